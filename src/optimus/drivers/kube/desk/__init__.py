"""The desk of a cluster: what people may ask of it, with their own rights.

    list, watch ─► sight: the mirror and the brain of the controller, on a copy ─► views, explanations, what-if
    verbs ─► writes of the user, checked by the server: create, apply, patch, delete

Why: the same verbs as on one machine. Nothing is asked of the controller: whoever may read the cluster computes what it
computes, by the same code; whoever may not is told what the controller has written on their objects.
Owns: names of jobs on a cluster, the records of docs/reference/http.md as they follow from objects, and the words with
which a server's refusal is said.
Must not: bind or evict, or act with anybody's rights but those of who asks.

    target            all verbs, behind the interface of `optimus.client.targets`
    sight, looking    what is seen: of the whole cluster, or of one namespace
    views, told       what is shown of it; what the controller said where it cannot be computed
    naming            which object is meant
    changing          cancel, suspend, resume, scale, delete
    sending, commands documents that are submitted; a command as a Job
    output            what containers have written
    following         changes, as they come
    refusing          errors of a server in words
"""
