"""One model trained and ranked by several processes, each with a part of its entities (torch.distributed)."""
