package mcpserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/platform/http/httpapi"
)

// A tool's work ends when its caller leaves.
func TestACallerWhoLeavesEndsTheTool(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan error, 1)
	s := NewServer(About{Name: "test", Version: "1"})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, struct{}, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, struct{}{}, ctx.Err()
	})
	server := httptest.NewServer(New(Config{
		About: About{Name: "test", Version: "1"}, Adapter: httpapi.Adapter{}, PublicURL: "http://127.0.0.1",
		Server: func(*http.Request) (*sdk.Server, error) { return s, nil },
		Admit:  func(_ http.ResponseWriter, r *http.Request) (*http.Request, error) { return r, nil },
	}))
	defer server.Close()
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
		}
	}()
	<-begun
	leave()
	if err := <-ended; err == nil {
		t.Error("the tool ended by itself")
	}
}
