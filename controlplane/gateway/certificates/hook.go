package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mholt/acmez/v3/acme"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/outbound"
)

// hookTime bounds one call of a hook, the time that a record takes to spread included.
const hookTime = 3 * time.Minute

// Hook sets records of DNS for dns-01. It is asked to present a record, and has done
// so when authorities can see it; then to clean it up. It comes from a setting and not
// from the configuration: who may change routes may not run programs.
type Hook struct {
	// Program is the absolute path of one, run as: PROGRAM present|cleanup NAME VALUE.
	// It is given no variables but PATH.
	Program string
	// URL gets {"action","name","value"} as JSON, and answers 2xx.
	URL    string
	Client *outbound.Client // for URL
	Path   string           // PATH of the program
}

// NewHook reads SLUICE_ACME_DNS_HOOK: a URL, the path of a program, or nothing.
func NewHook(text string, client *outbound.Client, path string) (h Hook, err error) {
	h = Hook{Client: client, Path: path}
	switch {
	case text == "":
	case strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://"):
		h.URL = text
	case filepath.IsAbs(text):
		h.Program = text
	default:
		return h, errors.New("SLUICE_ACME_DNS_HOOK must be the absolute path of a program, or an https:// address")
	}
	return h, nil
}

// Present implements acmez.Solver.
func (h Hook) Present(ctx context.Context, c acme.Challenge) error {
	return h.call(ctx, "present", c)
}

// CleanUp implements acmez.Solver.
func (h Hook) CleanUp(ctx context.Context, c acme.Challenge) error {
	return h.call(ctx, "cleanup", c)
}

func (h Hook) call(ctx context.Context, action string, c acme.Challenge) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	name, value := c.DNS01TXTRecordName(), c.DNS01KeyAuthorization()
	switch {
	case h.Program != "":
		return h.run(ctx, action, name, value)
	case h.URL != "":
		return h.post(ctx, action, name, value)
	}
	return errors.New("SLUICE_ACME_DNS_HOOK is not set, and dns-01 needs it")
}

func (h Hook) run(ctx context.Context, action, name, value string) error {
	var said head
	cmd := exec.CommandContext(ctx, h.Program, action, name, value)
	cmd.Env = []string{"PATH=" + h.Path}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the hook for DNS, asked to %s %s: %w: %s", action, name, err, said)
	}
	return nil
}

func (h Hook) post(ctx context.Context, action, name, value string) error {
	body, err := json.Marshal(map[string]string{"action": action, "name": name, "value": value})
	if err != nil {
		return err
	}
	res, err := h.Client.Do(ctx, outbound.Request{URL: h.URL, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Timeout: hookTime})
	if err != nil {
		return fmt.Errorf("the hook for DNS: %w", err)
	}
	if !res.OK() {
		return fmt.Errorf("the hook for DNS, asked to %s %s, answered %d: %s", action, name, res.Status, decision.Cut(string(res.Body), 300))
	}
	return nil
}

// head keeps the beginning of what is written into it.
type head []byte

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 300-len(*h))]...)
	return len(p), nil
}
