"""Results that anyone can make again: records of trained runs, and the paper's tables and figures from them."""
