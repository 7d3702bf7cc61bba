"""`closlab gym`: a fabric to learn in, as Gymnasium and PettingZoo have environments.

    Bench       a simulation that stands still between decisions          (bench.py)
      ├─ FabricEnv      one who decides for all switches: Gymnasium       (single.py)
      └─ SwitchesEnv    an agent a switch: PettingZoo's parallel          (several.py)

What may be decided is in `actions.py`, what is rewarded in `rewards.py`. `example.py` learns.
"""
