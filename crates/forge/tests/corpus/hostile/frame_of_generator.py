# tries: reach builtins through a generator; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class FrameOfGeneratorSkill(BaseSkill):
    name = "frame_of_generator"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        steps = (n for n in [1])
        return {"names": str(steps.gi_frame.f_builtins)}
