package sluice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	now  = time.Unix(1_800_000_000, 0)
	sent = []byte(`{"id":"evt_1","event":"stream.started","timestamp":"2027-01-15T08:00:00.000Z","stream_id":"strm_1","data":{"title":"Morning"}}`)
)

// signed is what Standard Webhooks 1.0.0 wants of a sender.
func signed(at time.Time, body []byte, keys ...string) http.Header {
	h := http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}}
	var list []string
	for _, k := range keys {
		mac := hmac.New(sha256.New, []byte(k))
		mac.Write([]byte("evt_1." + h.Get("Webhook-Timestamp") + "." + string(body)))
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set("Webhook-Signature", strings.Join(list, " "))
	return h
}

func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	const current, previous = "the secret of today!", "the secret of before"
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte(current))
	for name, test := range map[string]struct {
		header  http.Header
		secrets []string
		want    error
	}{
		"by the secret":                       {signed(now, sent, current), []string{current}, nil},
		"by a secret that is encoded":         {signed(now, sent, current), []string{encoded}, nil},
		"by the first of two":                 {signed(now, sent, current, previous), []string{current}, nil},
		"by the second of two":                {signed(now, sent, current, previous), []string{previous}, nil},
		"while the receiver has two":          {signed(now, sent, previous), []string{current, previous}, nil},
		"four minutes ago":                    {signed(now.Add(-4*time.Minute), sent, current), []string{current}, nil},
		"by another secret":                   {signed(now, sent, "another"), []string{current}, ErrWebhookSignature},
		"another body":                        {signed(now, []byte("{}"), current), []string{current}, ErrWebhookSignature},
		"no secret is known":                  {signed(now, sent, current), nil, ErrWebhookSignature},
		"by an empty secret":                  {signed(now, sent, ""), []string{""}, ErrWebhookSignature},
		"no signature":                        {http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"1800000000"}}, []string{current}, ErrWebhookSignature},
		"six minutes ago":                     {signed(now.Add(-6*time.Minute), sent, current), []string{current}, ErrWebhookTime},
		"in six minutes":                      {signed(now.Add(6*time.Minute), sent, current), []string{current}, ErrWebhookTime},
		"no time":                             {http.Header{}, []string{current}, ErrWebhookTime},
		"behind more signatures than we read": {signed(now, sent, append(strings.Fields(strings.Repeat("x ", 16)), current)...), []string{current}, ErrWebhookSignature},
	} {
		event, err := verifyWebhook(test.header, sent, test.secrets, now)
		if !errors.Is(err, test.want) || (err == nil) != (event != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if event != nil && (event.ID != "evt_1" || event.Event != "stream.started" || event.StreamID != "strm_1" || string(event.Data) != `{"title":"Morning"}` || event.Timestamp.Year() != 2027) {
			t.Errorf("%s: %+v", name, event)
		}
	}
}

// The example of Standard Webhooks itself.
func TestTheVectorOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	h := http.Header{"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}}
	_, err := verifyWebhook(h, []byte(`{"test": 2432232314}`), []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, time.Unix(1614265330, 0))
	if err != nil {
		t.Error(err)
	}
}
