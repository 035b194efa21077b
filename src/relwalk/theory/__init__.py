"""A trained model to understanding: does it do what the theory says it does?

orthogonality  RᵀR = I?             kinship        which M are inverse, composed, alike
concentration  Z_c = const?         lemma          sigma / mean of Z_c against n
theorem        log p = s/2d - 2 log Z?   sweep     where that stops holding
correlation    H@10 against all of these           calibration    is p(t | h, R) a probability?
walk           paths from the model                generate       a graph from a known model, and the way back
analyse        all of it, for one model and graph
"""
