package idempotency

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
)

// answer is what a handler answered.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// maxAnswer bounds a body that is stored, in bytes; a larger one is sent once.
const maxAnswer = 1 << 20

// final reports whether repeating the request would give the same answer.
// Failures of ours may pass, and so may a conflict or a limit.
func (a answer) final() bool {
	switch a.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return a.Status < 500
}

// write sends the answer to a client, who may have gone.
func (a answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	if len(a.Body) == 0 { // as it must be with 204
		return
	}
	if _, err := w.Write(a.Body); err != nil {
		slog.Debug("the client went away before its answer", "cause", err)
	}
}

// recorder keeps an answer back until it is stored.
type recorder struct {
	answer
	body bytes.Buffer
}

// newRecorder returns an empty recorder.
func newRecorder() *recorder { return &recorder{answer: answer{Header: http.Header{}}} }

// Header gives the headers to be sent with the answer.
func (r *recorder) Header() http.Header { return r.answer.Header }

// WriteHeader sets the status; as with a real writer, only the first call counts.
func (r *recorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

// Write adds to the body.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// done returns the answer once the handler has returned.
func (r *recorder) done() answer {
	r.WriteHeader(http.StatusOK)
	r.Body = r.body.Bytes()
	return r.answer
}

// cipherFor derives the key that seals the answer to a request with the given
// Idempotency-Key. Whoever has the table but not the key reads nothing.
func cipherFor(secret [32]byte, key string, scope []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, append(secret[:], key...), scope, "sluice idempotent answer", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts the answer, bound to the request that scope names.
func (a answer) seal(aead cipher.AEAD, scope []byte) ([]byte, error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, scope), nil
}

// open decrypts what seal made.
func open(aead cipher.AEAD, scope, sealed []byte) (a answer, err error) {
	plain, err := aead.Open(nil, nil, sealed, scope)
	if err != nil {
		return a, fmt.Errorf("open a stored answer: %w", err)
	}
	return a, json.Unmarshal(plain, &a)
}
