package standby_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/envoy/standby"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// The agent counts what is answered here: no Envoy knows of it.
func TestEveryAnswerIsCounted(t *testing.T) {
	t.Parallel()
	addr, answered := freeAddr(t), make(chan struct{}, 10)
	d, err := standby.Open([]string{addr}, "", time.Now, func() { answered <- struct{}{} }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	for range 3 {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if len(answered) != 3 {
		t.Errorf("%d answers are counted, want 3", len(answered))
	}
}

// open posts a standby listener at a free address.
func open(t *testing.T) (*standby.Listener, string) {
	t.Helper()
	addr := freeAddr(t)
	d, err := standby.Open([]string{addr}, "http://gateway.test", func() time.Time { return noon }, func() {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d, addr
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := freeport.Addrs(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

func TestEveryRequestIsRefusedInTheEnvelope(t *testing.T) {
	t.Parallel()
	_, addr := open(t)
	for _, target := range []string{"GET /health", "POST /v1/streams", "DELETE /v1/streams/1", "GET /nowhere"} {
		method, path, _ := strings.Cut(target, " ")
		req, err := http.NewRequest(method, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		checkRefusal(t, target, resp)
	}
}

func checkRefusal(t *testing.T, target string, resp *http.Response) {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Error struct {
			Code, Message    string
			RequestID        string `json:"request_id"`
			DocumentationURL string `json:"documentation_url"`
		}
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("%s: %v in %s", target, err, body)
	}
	got := map[string]string{"status": strconv.Itoa(resp.StatusCode), "code": envelope.Error.Code, "docs": envelope.Error.DocumentationURL}
	want := map[string]string{"status": "503", "code": "edge_not_ready", "docs": "http://gateway.test/docs/errors/edge_not_ready"}
	for name, value := range map[string]string{
		"Retry-After": "2", "Content-Type": "application/json", "X-Request-Id": envelope.Error.RequestID,
		"X-Ratelimit-Limit": "60", "X-Ratelimit-Remaining": "60", "X-Ratelimit-Window": "60",
		"X-Ratelimit-Reset": strconv.FormatInt(noon.Unix(), 10),
	} {
		got[name], want[name] = resp.Header.Get(name), value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", target, diff)
	}
	if !resp.Close || len(envelope.Error.RequestID) != 32 || envelope.Error.Message == "" {
		t.Errorf("%s: close %v, request id %q, message %q", target, resp.Close, envelope.Error.RequestID, envelope.Error.Message)
	}
}

func TestHTTP2WithoutTLSIsAnsweredToo(t *testing.T) {
	t.Parallel()
	_, addr := open(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: &protocols}}
	resp, err := client.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.ProtoMajor != 2 {
		t.Fatalf("%s, status %d", resp.Proto, resp.StatusCode)
	}
}

func TestTheAddressIsSharedAndGivenUp(t *testing.T) {
	t.Parallel()
	first, addr := open(t)
	second, err := standby.Open([]string{addr}, "", time.Now, func() {}, nil)
	if err != nil {
		t.Fatalf("the address is not shared: %v", err)
	}
	for _, d := range []*standby.Listener{first, second, second} {
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the address was not given up: %v", err)
	}
	_ = l.Close()
}

func TestOpenKeepsNothingWhenOneAddressIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := freeAddr(t)
	_, err = standby.Open([]string{addr, taken.Addr().String()}, "", time.Now, func() {}, nil)
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("err = %v, want that the address is in use", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the first address is still held: %v", err)
	}
	_ = l.Close()
}
