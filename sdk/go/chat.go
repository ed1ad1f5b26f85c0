package sluice

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"
)

// ChatStream is a completion as it is made.
type ChatStream struct {
	body io.ReadCloser
}

// CreateChatCompletion begins a completion, which always comes as a stream. It ends when
// the stream is closed or ctx ends, and what was not read then is neither made nor paid.
// An [IdempotencyKey] changes that: the completion goes on when its caller leaves, is paid
// in whole, and a repetition with the key gets it; that is why this call alone has no key
// by itself, and without one is not repeated. POST /v1/chat/completions of the chat runtime
func (c *Client) CreateChatCompletion(ctx context.Context, body ChatCompletionRequest, opts ...CallOption) (*ChatStream, error) {
	r := call{method: http.MethodPost, path: "/v1/chat/completions", body: body, chat: true, accept: "text/event-stream"}
	res, err := c.do(ctx, r, opts)
	if err != nil {
		return nil, err
	}
	return &ChatStream{body: res.Body}, nil
}

// Close ends the completion. A loop over Chunks or Text does it at its end.
func (s *ChatStream) Close() error { return s.body.Close() }

// Chunks are those of the completion; it can be gone through once. A completion that
// failed on the way ends with an *Error, one whose stream was cut off with
// io.ErrUnexpectedEOF.
func (s *ChatStream) Chunks() iter.Seq2[ChatCompletionChunk, error] {
	return func(yield func(ChatCompletionChunk, error) bool) {
		defer func() { _ = s.Close() }() // nothing is read from it any more
		for event, err := range ServerEvents(s.body) {
			if err != nil {
				yield(ChatCompletionChunk{}, err)
				return
			}
			if event.Data == "[DONE]" {
				return
			}
			failure := new(Error)
			if failure.read([]byte(event.Data)) {
				yield(ChatCompletionChunk{}, failure)
				return
			}
			var chunk ChatCompletionChunk
			if err := json.Unmarshal([]byte(event.Data), &chunk); err != nil {
				yield(ChatCompletionChunk{}, err)
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
		yield(ChatCompletionChunk{}, io.ErrUnexpectedEOF)
	}
}

// Text reads the whole completion and returns what the first choice says.
func (s *ChatStream) Text() (string, error) {
	var b strings.Builder
	for chunk, err := range s.Chunks() {
		if err != nil {
			return b.String(), err
		}
		b.WriteString(chunk.Text())
	}
	return b.String(), nil
}

// Text is what a chunk adds to the first choice; empty where it adds none.
func (c ChatCompletionChunk) Text() string {
	for _, choice := range c.Choices {
		if choice.Index == 0 {
			text, _ := choice.Delta["content"].(string)
			return text
		}
	}
	return ""
}
