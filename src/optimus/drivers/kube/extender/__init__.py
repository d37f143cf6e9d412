"""The same brain behind the stock kube-scheduler.

    offers      places that the brain has chosen, each waiting for kube-scheduler to take it
    answering   the extender protocol over HTTP: filter, prioritise, bind

Why: clusters that keep kube-scheduler as the binder get the same decisions, gangs too.
Owns: what passes between the two schedulers.
Must not: choose places, or be needed where Optimus binds by itself.
"""
