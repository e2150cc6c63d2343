"""What holds for all tests: hypothesis measures no time, since a busy machine is no mistake."""

from hypothesis import HealthCheck, settings

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kit")
