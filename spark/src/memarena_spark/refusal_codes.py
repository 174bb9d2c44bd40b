"""Lists the codes of refusals with the remedy of each. ``docs/spark.md`` explains them."""

from __future__ import annotations

from memarena_spark.errors import Refusal

NODE: dict[str, str] = {
    "node-mismatch": "run on a machine of this profile, or choose the profile of this machine",
    "gpu-absent": "install driver and nvidia-ml-py; in a container, give it the GPU (capability utility)",
    "driver": "install the pinned driver, or pin the new one and record golden values again",
    "kernel": "boot the pinned kernel, or pin the new one and record golden values again",
    "package": "install the pinned versions into this environment",
    "image": "start the container from the pinned digest, or pin the new one",
    "gpu-busy": "end the process, or add its name to gpu_processes of the plan if it belongs to the run",
    "gpu-slowdown": "let it cool, check supply and fan; a power cap is lifted by nvidia-smi -pl",
    "gpu-clock": "lift the clock limit: nvidia-smi -rgc (a cold start, where that does not help)",
    "governor": "cpupower frequency-set -g performance",
    "memory": "end what holds the memory; lower --mem-fraction-static if it is the model server",
    "swap": "free memory, then swapoff -a && swapon -a; better, switch swap off",
    "disk": "free space, or put the output elsewhere",
    "out": "make the run's user its owner: chown UID FOLDER (in the stack MEMARENA_USER and MEMARENA_OUT)",
    "busy": "end what uses the CPUs",
    "clock-sync": "timedatectl set-ntp true, and wait until timedatectl says synchronized: yes",
    "power-source": "connect the mains",
    "temperature": "let it cool, check the fan and what stands around it",
    "embedder-unreachable": "start ollama and pull the model: see the order of starting in docs/spark.md",
    "embedder-on-cpu": "stop the model server, restart ollama, load the embedder, then start the model server",
    "embedder-cold": "load the embedder with keep_alive -1 and see that it is on the GPU",
    "embedder-late": "stop the model server; start ollama and load the embedder first",
    "order-unknown": "name the containers of both servers in the plan, or run as their user",
    "reader-unreachable": "start the model server and wait until it is healthy",
    "reader-flags": "start the model server with the flags of the plan",
    "reader-probe": "read the model server's log; restart it",
    "reader-asked": "end the health checks and monitors that ask the model server; start it with --enable-metrics",
    "reader-remote": "start the model server on this machine, and name it by a loopback address",
    "server-exposed": "bind it to 127.0.0.1 (--host, or -p 127.0.0.1:PORT:PORT), or put it on its own network",
    "canary-failed": "install torch for this CUDA version; see that the device is free",
    "canary-slow": "restart the node from cold; measure again with memarena-spark canary",
    "canary-clock": "restart the node from cold: a slow state that shows in no counter ends with that",
    "canary-golden": "measure a well node with memarena-spark canary and put its figures into the plan",
    "thermal": "wait, improve the cooling, or end what heats the node",
    "locked": "wait for the other run; its lock goes with its process",
}
"""Reasons not to begin a run."""

RESULT: dict[str, str] = {
    "not-complete": "run again from the start",
    "plan-lacks": "mend the plan, run again",
    "no-floor": "run again with floor_samples in the plan's run, and without a cache",
    "template-unchecked": "give the reader's golden_prompt_tokens in the plan, run again",
    "resumed": "run again from the start: times of two processes never mix",
    "missing-question": "run again from the start",
    "failed-question": "mend the backend or the server that failed, run again",
    "problem": "see memarena show RUN --failures and the backend's log, run again",
    "late-calls": "the backend must not call models after an RPC has returned (SPEC.md, MOD)",
    "diagnostic": "leave diagnostic backends out of the plan",
    "own-model": "leave it out of the plan, or connect it so that it uses the caller's models",
    "not-isolated": "name the backend's image in the plan (image:REFERENCE), run again",
    "not-timed": "run at concurrency 1 and without a cache",
    "no-real-reader": "name a reader with a model",
    "warm-cache": "start the model server with its prefix cache off, or certify the class warm",
    "cache-unknown": "use a model server that reports cached tokens, or one that runs without a prefix cache",
    "too-few-samples": "ask more questions",
    "outside-phase": "the log is not that of this run",
    "incoherent": "keep the node's clock in step, leave the log as it was written, run again",
    "canary-drift": "find out why the node slowed down or sped up during the run, run again",
    "node-changed": "keep the node as it was found until the run is over, run again",
    "conformance": "mend the backend until memarena conformance passes",
    "code-changed": "do not touch a backend while its run goes on, run again",
    "reader-elsewhere": "start the model server without telemetry, look-ups and clients elsewhere; run again",
    "reader-unknown": "start the model server as a process of the run's user (docs/spark.md, Readers); run again",
    "energy": "see the reason; a phase with gaps or without a meter gives no joules",
    "latency-study": "make it again, of this run: memarena latency report RUN/run --out FOLDER",
    "announcement": "announce the run before it starts, with the plan as it is run: memarena-spark announce",
    "fresh-world": "commit before the beacon's round, change nothing after it, and run on the world that follows",
    "unsigned": "give --key: this profile certifies nothing without a signature",
    "test-profile": "use a profile that memarena-spark brings",
}
"""Reasons not to certify a finished run."""

WITNESS: dict[str, str] = {
    "announcements-changed": "ask the node's operator for the file that was seen, with its later lines",
}
"""Reasons not to confirm announcements."""

REMEDIES = {**NODE, **RESULT, **WITNESS}
"""Remedy of every code: what the operator can do, one line."""


def refusal(code: str, reason: str) -> Refusal:
    """Return a refusal with the remedy of its code. Raises KeyError for a code that is not in the tables."""
    return Refusal(code=code, reason=" ".join(reason.split()), remedy=REMEDIES[code])
