"""The admission webhook: HTTP and TLS at the edge, admission reviews to values, decisions to patches."""
