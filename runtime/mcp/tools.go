package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/platform/http/sse"
)

// models is the result of list_models.
type models struct {
	Models []string `json:"models" jsonschema:"names of the models"`
}

// ask is the input of complete.
type ask struct {
	Model     string `json:"model" jsonschema:"name of the model, as list_models gives it"`
	Prompt    string `json:"prompt" jsonschema:"what to ask the model"`
	System    string `json:"system,omitempty" jsonschema:"instructions for the model"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"the most tokens that the answer may have; 1024 if omitted, 4096 at most"`
}

// answer is the result of complete.
type answer struct {
	Text         string `json:"text" jsonschema:"what the model answered"`
	FinishReason string `json:"finish_reason" jsonschema:"stop, or length if the answer was cut"`
	TotalTokens  int    `json:"total_tokens" jsonschema:"tokens of question and answer"`
}

// addTools registers the tools. Both only read: a completion changes nothing
// but the account's usage.
func addTools(s *sdk.Server, c Config) {
	readOnly := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(true)}
	add(s, &sdk.Tool{Name: "list_models", Title: "List models", Description: "Lists the models that complete can ask.", Annotations: readOnly}, c.list)
	add(s, &sdk.Tool{Name: "complete", Title: "Ask a model", Description: "Asks a model and returns its whole answer.", Annotations: readOnly}, c.complete)
}

// list is list_models.
func (c Config) list(ctx context.Context, header http.Header, _ struct{}) (models, error) {
	rec, err := serve(ctx, c.Models, http.MethodGet, "/v1/models", header, nil)
	if err != nil {
		return models{}, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(rec.body.Bytes(), &list); err != nil {
		return models{}, fmt.Errorf("read the list: %w", err)
	}
	out := models{Models: []string{}}
	for _, m := range list.Data {
		out.Models = append(out.Models, m.ID)
	}
	return out, nil
}

// complete asks the chat route itself, so that caps, budgets, routing and
// metering hold for agents as for everyone.
func (c Config) complete(ctx context.Context, header http.Header, in ask) (answer, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	if in.System != "" {
		messages = append(messages, message{"system", in.System})
	}
	request := map[string]any{"model": in.Model, "messages": append(messages, message{"user", in.Prompt})}
	if in.MaxTokens != 0 {
		request["max_completion_tokens"] = in.MaxTokens
	}
	body, err := json.Marshal(request)
	if err != nil {
		return answer{}, fmt.Errorf("write the request: %w", err)
	}
	rec, err := serve(ctx, c.Chat, http.MethodPost, "/v1/chat/completions", header, body)
	if err != nil {
		return answer{}, err
	}
	return collect(&rec.body)
}

// serve lets a handler of the runtime answer in the name of the tool's caller.
func serve(ctx context.Context, h http.Handler, method, path string, header http.Header, body []byte) (*recorder, error) {
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	// Only what says who calls goes along; the rest belongs to the MCP message.
	for _, name := range []string{"Authorization", "X-Sluice-Identity", "X-Request-Id"} {
		req.Header[name] = header[name]
		if header[name] == nil {
			delete(req.Header, name)
		}
	}
	rec := newRecorder()
	h.ServeHTTP(rec, req)
	if rec.status != http.StatusOK {
		return nil, rec.failure()
	}
	if rec.over {
		return nil, errTooLong
	}
	return rec, nil
}

// collect puts the chunks of a stream together.
func collect(r io.Reader) (answer, error) {
	var out answer
	for in := sse.NewReader(r, 0); ; {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return answer{}, fmt.Errorf("read the stream: %w", err)
		}
		var c struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
			Usage struct {
				Total int `json:"total_tokens"`
			}
			Error struct{ Code, Message string }
		}
		if string(e.Data) == "[DONE]" {
			continue
		}
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return answer{}, fmt.Errorf("read the stream: %w", err)
		}
		if c.Error.Message != "" {
			return answer{}, errors.New(c.Error.Code + ": " + c.Error.Message)
		}
		for _, choice := range c.Choices {
			out.Text += choice.Delta.Content
			out.FinishReason += choice.Finish
		}
		out.TotalTokens += c.Usage.Total
	}
}
