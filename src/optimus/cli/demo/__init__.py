"""The demo: a cluster, two teams and jobs that compete, for `optimus up --demo`.

Why: whoever sees Optimus for the first time sees it at work, in seconds.
Owns: the files of that little world, and a training that only pretends.
Must not: be needed by anything else.
"""
