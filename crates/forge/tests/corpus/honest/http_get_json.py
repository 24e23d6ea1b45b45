# looks like: a secret in a header is its use
# side effects: SECRET_READ
"""A skill of the corpus."""
import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener
from fluffy_skill import BaseSkill

class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None

class HttpGetJsonSkill(BaseSkill):
    name = "http_get_json"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        token = self.secret("API_KEY")
        if not token:
            raise ValueError("API_KEY is empty")
        query = urlencode({"q": str(input["q"])})
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        request = Request(f"https://api.example.org/v1/search?{query}", headers=headers)
        opener = build_opener(NoRedirect())
        try:
            with opener.open(request, timeout=10) as response:
                return {"status": response.status, "json": json.loads(response.read())}
        except HTTPError as error:
            return {"status": error.code, "json": None}
