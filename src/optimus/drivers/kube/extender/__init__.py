"""The same brain behind the stock kube-scheduler, for clusters that keep it as the binder.

offers      places that the brain has chosen, each waiting for kube-scheduler to take it
answering   the extender protocol over HTTP: filter, prioritise, bind
"""
