package signature_test

import (
	"fmt"
	"net/http"
	"time"

	"sluice.dev/sluice/workers/webhooks/signature"
)

// During a rotation a delivery carries the signatures of both secrets, so that a
// receiver may check with either.
func ExampleSet() {
	current, previous := []byte("the current secret"), []byte("the previous secret")
	body := []byte(`{"event":"stream.started"}`)
	at := time.Unix(1_800_000_000, 0)

	h := http.Header{}
	signature.Set(h, [][]byte{current, previous}, "evt_1", at, body)

	fmt.Println(h.Get(signature.StandardID), h.Get(signature.StandardTimestamp))
	fmt.Println(signature.Verify(current, h, body, at))
	fmt.Println(signature.Verify(previous, h, body, at))
	// Output:
	// evt_1 1800000000
	// <nil>
	// <nil>
}

func ExampleVerify() {
	secret, body := []byte("a secret of 16 bytes or more"), []byte(`{"event":"stream.started"}`)
	at := time.Unix(1_800_000_000, 0)
	h := http.Header{}
	signature.Set(h, [][]byte{secret}, "evt_1", at, body)

	fmt.Println("as sent:", signature.Verify(secret, h, body, at))
	fmt.Println("changed:", signature.Verify(secret, h, []byte(`{}`), at))
	fmt.Println("replayed an hour later:", signature.Verify(secret, h, body, at.Add(time.Hour)))
	// Output:
	// as sent: <nil>
	// changed: WEBHOOK_002
	// replayed an hour later: WEBHOOK_002: The timestamp is missing or too far from the present.
}

func ExampleBody() {
	fmt.Println(signature.Body([]byte("secret"), []byte("hello")))
	// Output: 88aab3ede8d3adf94d26ab90d3bafd4a2083070c3bcce9c014ee04a443847c0b
}
