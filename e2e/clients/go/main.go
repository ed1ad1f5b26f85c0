// Command clients runs the official Go client against a runtime and prints what
// it saw, one JSON object, for the end-to-end tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithBaseURL(os.Getenv("BASE")), option.WithAPIKey(os.Getenv("KEY")), option.WithMaxRetries(0))
	out := map[string]any{"openai": map[string]any{
		"text": text(client), "tools": tools(client), "errors": failures(client), "cancel": cancel(client), "models": models(client),
	}}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "echo-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
}

// text adds chunks up as the client's helper does: the one that counts usage
// twice if it comes twice.
func text(c openai.Client) map[string]any {
	var all openai.ChatCompletionAccumulator
	s := c.Chat.Completions.NewStreaming(context.Background(), ask("one two three"))
	for s.Next() {
		all.AddChunk(s.Current())
	}
	if s.Err() != nil || len(all.Choices) == 0 {
		return map[string]any{"error": fmt.Sprint(s.Err())}
	}
	return map[string]any{"text": all.Choices[0].Message.Content, "finish": all.Choices[0].FinishReason, "total": all.Usage.TotalTokens,
		"sum": all.Usage.PromptTokens + all.Usage.CompletionTokens}
}

func tools(c openai.Client) string {
	p := ask("use get_weather")
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "get_weather", Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}},
	})}
	var all openai.ChatCompletionAccumulator
	s := c.Chat.Completions.NewStreaming(context.Background(), p)
	for s.Next() {
		all.AddChunk(s.Current())
	}
	if s.Err() != nil || len(all.Choices) == 0 || len(all.Choices[0].Message.ToolCalls) == 0 {
		return fmt.Sprint("no call: ", s.Err())
	}
	f := all.Choices[0].Message.ToolCalls[0].Function
	return f.Name + f.Arguments
}

func failures(c openai.Client) map[string]any {
	status := func(p openai.ChatCompletionNewParams, opts ...option.RequestOption) int {
		s := c.Chat.Completions.NewStreaming(context.Background(), p, opts...)
		for s.Next() {
		}
		if e, ok := errors.AsType[*openai.Error](s.Err()); ok {
			return e.StatusCode
		}
		return 0
	}
	unknown := ask("x")
	unknown.Model = "none"
	empty := ask("x")
	empty.Messages = nil
	return map[string]any{"unknown": status(unknown), "invalid": status(empty), "key": status(ask("x"), option.WithAPIKey("wrong"))}
}

// cancel leaves a slow stream behind its first words.
func cancel(c openai.Client) bool {
	p := ask("one two three four five six seven eight nine ten")
	p.Model = "echo-1-slow"
	s := c.Chat.Completions.NewStreaming(context.Background(), p)
	return s.Next() && s.Next() && s.Close() == nil
}

func models(c openai.Client) []string {
	page, err := c.Models.List(context.Background())
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	return names
}
