"""Call git and keep its answers: one hardened process, standing git processes, a cache.

This room knows processes, files and bytes. It does not know repositories: `engine.git.runner.Repo`
and `engine.git.objects` use it, and the rest of the git room goes through them.
"""
