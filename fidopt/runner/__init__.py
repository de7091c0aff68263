"""Methods run under one contract: an environment and a folder of their own, measured, ended in time, never trusted."""
