"""What a run is: a folder that is read, written and answered from. Nothing here trains.

run           the record, and the run: load_run       folder        names of the files, one writer at a time
graph_files   the graph as a run keeps it             tensor_file   safetensors, checked by their headers
checkpoint    where a training stands, and the weights it has so far
"""
