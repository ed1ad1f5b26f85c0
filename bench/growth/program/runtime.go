package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"sluice.dev/sluice/media/analytics"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/page"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/echo"
	"sluice.dev/sluice/runtime/chat/tokens"
	"sluice.dev/sluice/runtime/chat/upstream"
)

const question = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// runtime are the rows of chat: requests, and what providers answer.
func runtime() []parser {
	chunks := in(`{"id":"c","choices":[{"index":0,"delta":%s}]}`, `{"id":"c","choices":%s}`, `{"id":"c","choices":[],"usage":%s}`, `{"error":%s}`)
	events := append(lines("", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a b\"}}]}\n\n", "data: [DONE]\n\n", ":\n\n", "event: a\n", "data:\n", "id: 1\n\n"),
		framed("data: %s\n\ndata: [DONE]\n\n", chunks)...)
	whole := in(`{"id":"c","choices":[{"index":0,"message":%s}]}`, `{"id":"c","choices":%s}`, `{"error":%s}`)
	return []parser{
		{name: "platform/http/sse: Reader", read: quietly(func(in []byte) {
			for r := sse.NewReader(bytes.NewReader(in), 0); ; {
				if _, err := r.Next(); err != nil {
					return
				}
			}
		}), forms: events},
		{name: "runtime/chat: a provider's stream", read: relayed("text/event-stream"), forms: events, multiple: 512, constant: 1 << 20},
		{name: "runtime/chat/upstream: a whole answer", read: relayed("application/json"), forms: whole, multiple: 256, constant: 1 << 20},
		{name: "runtime/chat/echo: a request", read: completed(echo.Provider{}), forms: chat2, multiple: 128, constant: 1 << 20, n: 2 << 10},
		{name: "runtime/chat/tokens: Prompt, Bound", read: quietly(func(in []byte) { tokens.Prompt(in); tokens.Bound(in) }), forms: valid(chat2), multiple: 128},
		{name: "runtime/chat/tokens: Count, Prefix", read: quietly(func(in []byte) { tokens.Count(string(in)); tokens.Prefix(string(in), len(in)/2) }),
			forms: texts("word%s"), multiple: 1 << 10},
	}
}

// chat2 are requests for few tokens.
var chat2 = append([]shape{{"many tools and a long text", func(n int) []byte {
	return []byte(`{"model":"m","max_tokens":4,"tools":[{"type":"function","function":{"name":"f"}}` + times(n/2, `,{"type":"function","function":{"name":"f"}}`) +
		`],"messages":[{"role":"user","content":"` + times(n/2, "word ") + `"}]}`)
}}}, in(`{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"hi"}],"tools":%s}`, `{"model":"m","max_tokens":4,"messages":[{"role":"user","content":%s}]}`, `{"model":"m","max_tokens":4,"messages":%s}`)...)

// framed puts forms where %s stands in frame.
func framed(frame string, forms []shape) (list []shape) {
	head, tail, _ := bytes.Cut([]byte(frame), []byte("%s"))
	for _, f := range forms {
		list = append(list, shape{f.name + " in an event", func(n int) []byte { return bytes.Join([][]byte{head, f.make(n), tail}, nil) }})
	}
	return list
}

// relayed is what the runtime makes of a provider's answer.
func relayed(contentType string) func([]byte) error {
	return quietly(func(in []byte) {
		p, err := upstream.New(upstream.Config{BaseURL: "http://provider", Key: "k", Client: &http.Client{Transport: answering{in, contentType}}})
		if err != nil {
			panic(err)
		}
		_ = completed(p)([]byte(question))
	})
}

// completed is what the runtime makes of a request.
func completed(p chat.Provider) func([]byte) error {
	h := chat.NewHandler(chat.Config{Pool: chat.NewPool([]chat.Target{{Name: "p", Provider: p}}, nil), Adapter: quiet, Log: silent})
	return served(h, func(in []byte) *http.Request { return post(in, "application/json") })
}

// media are the rows of the reference product.
func media() []parser {
	pages := texts("limit=%s", "cursor=%s", "status=%s", "from=%s", "stream_id=%s")
	formed := func(read func(f *form.Form, q url.Values)) func([]byte) error {
		return query(func(q url.Values) error {
			var f form.Form
			read(&f, q)
			return f.Err()
		})
	}
	return []parser{
		{name: "media/legacy: ParsePage", read: quietly(func(in []byte) { _, _ = legacy.ParsePage(in) }), forms: in(`{"data":%s}`, `{"data":[{"id":"a","title":%s}]}`)},
		{name: "media/api/page: Parse", read: formed(func(f *form.Form, q url.Values) { page.Parse(f, q) }), forms: pages},
		{name: "media/analytics: ParseRange", read: formed(func(f *form.Form, q url.Values) { analytics.ParseRange(f, q, now) }), forms: pages},
		{name: "media/live/streams: ParseFilter", read: formed(func(f *form.Form, q url.Values) { streams.ParseFilter(f, q) }), forms: pages},
		{name: "media/assets: ParseFilter", read: formed(func(f *form.Form, q url.Values) { assets.ParseFilter(f, assets.VOD, q) }), forms: pages},
		{name: "media/live/streams: Apply, ParseBitrate", read: func(in []byte) error {
			s, text := streams.Defaults(), string(in)
			var f form.Form
			streams.Input{Title: &text, Protocol: &text, Settings: &streams.Settings{Quality: &text, Bitrate: &text}, Metadata: &map[string]string{text: text}}.Apply(&f, &s, plans.Limits{})
			return f.Err()
		}, forms: texts("4%s")},
		{name: "media/playback/signing: Verify", read: quietly(func(in []byte) { _, _ = signing.Verify(secret, string(in), signing.Playback, "play_1", now) }),
			forms: texts("eyJhbGciOiJIUzI1NiJ9.%s.AAAA", "eyJhbGciOiJIUzI1NiJ9.e30.%s")},
		{name: "media/live/signalling: Understood", read: quietly(func(in []byte) { signalling.Understood(in) }),
			forms: lines("v=0\r\n", "m=video 9 X 96\r\na=rtpmap:96 H264/90000\r\n",
				"a=rtpmap:96 H264/90000\r\n", "m=audio 9 X 8\r\n", "m=audio 9 X 8 8 8 8 8 8 8 8 8 8\r\n", "a=fmtp:96\r\n")},
		{name: "media/files/mp4: Parse", read: quietly(func(in []byte) { _, _ = mp4.Parse(bytes.NewReader(in), int64(len(in))) }), forms: films},
		{name: "media/live/moq/wire: ReadMessage, ParseRequest", read: moqControl, forms: moqMessages, multiple: 400},
		{name: "media/live/moq/wire: ReadSubgroup, ReadObject", read: moqObjects, forms: moqStreams},
		{name: "media/live/moq/packaging: ParseChunk", read: quietly(func(in []byte) { _, _ = packaging.ParseChunk(in) }), forms: moqChunks},
		{name: "media/live/moq/packaging: ParseCatalog, ParseTrack", read: quietly(func(in []byte) { _, _ = packaging.ParseCatalog(in) }), forms: in(`{"tracks":%s}`, `{"tracks":[{"initData":%s}]}`, `{"video":{"renditions":%s}}`), multiple: 400, constant: 1 << 20},
		{name: "media/captions: Parse", read: quietly(func(in []byte) { _, _ = captions.Parse(string(in)) }),
			forms: lines("WEBVTT\n\n", "00:00.000 --> 00:01.000\na\n\n", "1\n00:00:00,000 --> 00:00:01,000\na\n\n", "-->\n", "NOTE a\n\n", "STYLE\n\n",
				"<b>", "<00:00.000>", "00:00.000 --> 00:01.000 line:0 position:0\n")},
		{name: "media/playback: Sign", read: quietly(func(in []byte) { _, _ = playback.Sign(in, "token") }),
			forms: lines("#EXTM3U\n", "seg.mp4\n", "#EXT-X-MAP:URI=\"init.mp4\"\n", `URI="a",`, "#URI=\"", "seg.mp4?a=b&c=d\n", "#\n", "https://a.b/c\n"), multiple: 1 << 10},
	}
}

// valid leaves out what is no JSON: parsers behind the caps see none.
func valid(forms []shape) (list []shape) {
	for _, f := range forms {
		list = append(list, shape{f.name, func(n int) []byte {
			b := f.make(n)
			if !json.Valid(b) {
				return []byte("{}")
			}
			return b
		}})
	}
	return list
}
