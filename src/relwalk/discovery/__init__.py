"""What a trained model says about the graph itself: links it lacks, entities that are one, triples that look wrong."""
