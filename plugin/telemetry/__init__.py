"""What this node's parts tell others: the state of the node as one document, and as metrics."""
