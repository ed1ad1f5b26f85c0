"""How bodies that are neither JSON nor a form are sent."""
import schemathesis


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def text(ctx, value):
    return str(value).encode("utf-8", "replace")
