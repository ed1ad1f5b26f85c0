package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/signature"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func TestTrialOfASubscription(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	id := a.Subscribe(r.URL, webhooks.Create{}).ID
	v := a.must(200, "POST", "/v1/webhooks/"+id+"/test", nil)
	event, sent := v["test_event"].(object), v["delivery"].(object)
	if v["webhook_id"] != id || event["event"] != "test.webhook" || sent["status"] != 204.0 || sent["success"] != true {
		t.Errorf("%v", v)
	}
	if _, err := time.Parse(time.RFC3339, event["timestamp"].(string)); err != nil {
		t.Error(err)
	}
	got := <-r.Got
	if err := signature.Verify([]byte(webhooktest.Secret), got.Header, got.Body, time.Now()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(got.Body), `"event":"test.webhook"`) {
		t.Errorf("%s", got.Body)
	}
	r.Answer(500)
	sent = a.must(200, "POST", "/v1/webhooks/"+id+"/test", nil)["delivery"].(object)
	if sent["status"] != 500.0 || sent["success"] != false {
		t.Errorf("%v", sent)
	}
}

func TestTrialOfABareURLTellsLittle(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	r.AnswerWith(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "inner secret") })
	v := a.must(200, "POST", "/v1/webhooks/test", object{"url": r.URL})
	if len(v) != 3 || v["success"] != true || v["status_code"] != 200.0 || v["response_time_ms"] == nil {
		t.Errorf("%v", v)
	}
	if got := <-r.Got; got.Header.Get(signature.Header) != "" {
		t.Error("signed without a secret")
	}
	if v := a.must(200, "POST", "/v1/webhooks/test", object{"url": "http://127.0.0.1:1/"}); v["success"] != false || v["status_code"] != 0.0 {
		t.Errorf("%v", v)
	}
	for _, url := range []string{"", "http://10.1.2.3/", "https://[::1]/", "http://0x7f.1/", "ftp://example.com/"} {
		a.must(400, "POST", "/v1/webhooks/test", object{"url": url})
	}
}

func TestRotationOverHTTP(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.Subscribe("http://127.0.0.1:1/", webhooks.Create{}).ID
	const fresh = "a fresh secret, long enough"
	if v := a.must(200, "POST", path+"/rotate-secret", object{"secret": fresh}); v["secret"] != fresh {
		t.Errorf("%v", v)
	}
	if status, v := a.call("POST", path+"/rotate-secret", object{"secret": "x", "overlap_seconds": 1 << 50}); status != 400 || len(problems(v)) != 2 {
		t.Errorf("%d %v", status, v)
	}
	for _, secret := range []string{fresh, webhooktest.Secret} {
		a.must(200, "POST", path+"/verify", object{"payload": "{}", "signature": signature.Body([]byte(secret), []byte("{}"))})
	}
}

func TestVerifyReportsWEBHOOK002(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.Subscribe("http://127.0.0.1:1/", webhooks.Create{}).ID + "/verify"
	v := a.must(400, "POST", path, object{"payload": "{}", "signature": strings.Repeat("0", 64)})
	if v["error"].(object)["code"] != "WEBHOOK_002" {
		t.Errorf("%v", v)
	}
	a.must(400, "POST", path, object{"payload": "{}"})
}
