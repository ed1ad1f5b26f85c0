package payments

import (
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
)

// FuzzRead holds the reading of orders to its cost, and to errors that are the
// caller's.
func FuzzRead(f *testing.F) {
	const payment = `{"x402Version":1,"scheme":"exact","network":"base","payload":{"signature":"0x00","authorization":{"from":"0x1","to":"0x2","value":"1","validAfter":"0","validBefore":"9","nonce":"0x3"}}}`
	for _, s := range []string{
		`{"x402Version":1,"paymentPayload":` + payment + `,"paymentRequirements":{"scheme":"exact","network":"base","maxAmountRequired":"1"}}`,
		`{"paymentPayload":{},"paymentRequirements":{"maxAmountRequired":"` + strings.Repeat("9", 3000) + `"}}`,
		`{"paymentPayload":` + strings.Repeat(" ", 3000) + `7,"paymentPayload":[` + strings.Repeat("{},", 1000) + `{}]}`,
		`{"extra":` + strings.Repeat("[", 3000), strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000), "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		growth.Linear(t, len(body), 64, 128<<10, func() {
			r := httptest.NewRequest("POST", "/x402/verify", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			_, err := ReadOrder(httptest.NewRecorder(), r)
			if code := apierror.Code(err); err != nil && code == decision.Internal {
				t.Fatalf("%q: %v", body, err)
			}
		})
	})
}
