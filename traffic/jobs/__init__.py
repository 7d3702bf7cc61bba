"""Jobs: steps of compute and communication, models that ask for them, and where ranks run."""

from traffic.jobs.cluster import Cluster, ClusterJob
from traffic.jobs.experts import ExpertsJob
from traffic.jobs.inference import InferenceJob, Request
from traffic.jobs.job import Job
from traffic.jobs.model import Experts, Model, load_model, model_names
from traffic.jobs.placement import Placer, Policy
from traffic.jobs.simple import SimpleJob
from traffic.jobs.specs import KINDS, MixSpec, Workload, make_workload, read_traffic
from traffic.jobs.training import (
    Algorithms,
    Batch,
    TrainingJob,
)

__all__ = [
    "KINDS",
    "Algorithms",
    "Batch",
    "Cluster",
    "ClusterJob",
    "Experts",
    "ExpertsJob",
    "InferenceJob",
    "Job",
    "MixSpec",
    "Model",
    "Placer",
    "Policy",
    "Request",
    "SimpleJob",
    "TrainingJob",
    "Workload",
    "load_model",
    "make_workload",
    "model_names",
    "read_traffic",
]
