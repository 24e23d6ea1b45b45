# tries: reach a frame through an error; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class FrameOfErrorSkill(BaseSkill):
    name = "frame_of_error"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        try:
            return {"n": 1 // 0}
        except ZeroDivisionError as error:
            return {"names": str(error.__traceback__.tb_frame)}
