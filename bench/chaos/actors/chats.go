package actors

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
)

// words is what the built-in model is asked to repeat, over two seconds.
const words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"

// chunk is what is read of one event.
type chunk struct {
	Choices []struct {
		Delta struct{ Content string }
	}
	Usage *struct {
		Total int64 `json:"total_tokens"`
	}
}

// chat has a completion streamed and reads it to its end.
func (w *World) chat(ctx context.Context) {
	model := "echo-1"
	if w.chance(0.5) {
		model = "echo-1-slow"
	}
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": words}}})
	if err != nil {
		return
	}
	e := w.edge()
	try := audit.Try{Edge: e.Name, What: "POST /v1/chat/completions"}
	defer func() { w.tried(try) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Runtime+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", bearer(w.key))
	req.Header.Set("Content-Type", "application/json")
	res, err := w.Client.Do(req)
	if err != nil {
		w.completed(audit.Chat{}, 0)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		try.Status = res.StatusCode
		return // nothing has begun
	}
	c, total := readChat(res)
	if c.Done {
		try.Status = res.StatusCode
	}
	w.completed(c, total)
}

// readChat reads the events of an answer.
func readChat(res *http.Response) (audit.Chat, int64) {
	var c audit.Chat
	var text strings.Builder
	total := int64(0)
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			c.Done = true
			continue
		}
		var e chunk
		if json.Unmarshal([]byte(data), &e) != nil {
			break
		}
		for _, choice := range e.Choices {
			text.WriteString(choice.Delta.Content)
		}
		if e.Usage != nil {
			total = e.Usage.Total
		}
	}
	c.Whole, c.Usage = strings.Contains(text.String(), words), total > 0
	return c, total
}

// tokensOfOne bounds what a completion that broke off may have taken.
const tokensOfOne = 200

// completed notes a completion. One that broke off may have been charged.
func (w *World) completed(c audit.Chat, total int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Chats = append(w.seen.Chats, c)
	if !c.Done {
		w.seen.Tokens.Unanswered += tokensOfOne
		return
	}
	w.seen.Tokens.Answered += total
	w.chatted = append(w.chatted, time.Now())
}
