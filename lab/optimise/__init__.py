"""Values of a scenario's keys that serve its workload best, searched for with Optuna.

levers ──► search: asks Optuna for trials, runs each under several seeds, tells what came of it
              └──► answer: one trial of the Pareto front, run again with seeds of its own
                      ├──► files: keys of a scenario, SONiC's tables
                      └──► page
"""
