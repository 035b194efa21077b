"""A trained model to understanding: does it do what the theory says it does?

orthogonality  RᵀR = I?             relation_similarity   which M are inverse, composed, alike
concentration  Z_c = const?         lemma                 sigma / mean of Z_c against n
theorem        log p = s/2d - 2 log Z?   sweep     where that stops holding
correlation    H@10 against all of these           walk           paths from the model
generate       a graph from a known model          closed_loop    that model against one that learned its graph
analyse        all of it, and evaluation's calibration, for one model and graph
"""
