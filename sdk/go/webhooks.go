package sluice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The reasons for which what came to a webhook endpoint is not believed.
var (
	ErrWebhookSignature = errors.New("sluice: no signature of the webhook is by a known secret")
	ErrWebhookTime      = errors.New("sluice: the webhook's timestamp is missing or too far from the present")
)

// WebhookTolerance is how far the timestamp of a delivery may be from the present.
const WebhookTolerance = 5 * time.Minute

// WebhookEvent is what a webhook endpoint receives.
type WebhookEvent struct {
	ID          string          `json:"id"` // the same in each attempt: handle it once
	Event       string          `json:"event"`
	Timestamp   time.Time       `json:"timestamp"`
	StreamID    string          `json:"stream_id"`
	RecordingID string          `json:"recording_id"`
	Data        json.RawMessage `json:"data"` // as the catalogue of events says
}

// VerifyWebhook returns the event of a request to a webhook endpoint, if it was signed
// with one of secrets not long ago; give the new and the previous secret while one is
// rotated. body is the request's, byte for byte. It takes time linear in body and in the
// number of signatures and secrets; compares take constant time.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (*WebhookEvent, error) {
	return verifyWebhook(header, body, secrets, time.Now())
}

// maxSignatures bounds the signatures of a request that are looked at.
const maxSignatures = 16

func verifyWebhook(header http.Header, body []byte, secrets []string, now time.Time) (*WebhookEvent, error) {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > WebhookTolerance {
		return nil, ErrWebhookTime
	}
	given := strings.Fields(header.Get("Webhook-Signature"))
	given = given[:min(len(given), maxSignatures)]
	good := false
	for _, secret := range secrets {
		if secret == "" {
			continue // whoever knows nothing could sign with it
		}
		mac := hmac.New(sha256.New, webhookKey(secret))
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, g := range given {
			good = hmac.Equal(want, []byte(g)) || good
		}
	}
	if !good {
		return nil, ErrWebhookSignature
	}
	event := new(WebhookEvent)
	if err := json.Unmarshal(body, event); err != nil {
		return nil, fmt.Errorf("sluice: webhook: %w", err)
	}
	return event, nil
}

// webhookKey is what a secret signs with: the bytes for which whsec_… stands, or the text itself.
func webhookKey(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(secret)
}
