"""Find out what this machine can enforce, and wrap an attempt in it.

    probe.probe(env, cache_dir) -> MachineSupport  what this machine can do, tried out once a boot
    confine.confine(machine, request) -> Profile   an attempt wrapped, for the keeper to carry out
    confine.looking(machine, request)              words for a short program of the engine's own
    confine.set_limits, release                    cgroups of the living and the dead
    environment.environment(machine, request, extra)  the agent's whole environment
    ladder.report(machine, request, read_back)     levels, and how to get more
    ladder.check_required(dimensions, report)      refuse a run where less is enforced
    room.room(folder) -> Room                      what is free for attempts, seen from in here
    tamper.fingerprint, violations, changed_since  what changed that should not have
    reach.may_write(machine, request, path)        whether an attempt could have done it

This room knows mechanisms and their probes. It does not start attempts and does not know what an
agent is. Nothing here is asynchronous: probing, confining and releasing take milliseconds, so run
them in a thread.
"""
