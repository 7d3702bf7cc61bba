"""Fabrics whose switches run SONiC: read from `config_db.json`, checked, brought as a scenario."""
