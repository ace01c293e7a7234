"""The admission webhook: AdmissionReviews over TLS, decided on by the rules."""
