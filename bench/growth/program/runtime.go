package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"sluice.dev/sluice/media/analytics"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/editor"
	"sluice.dev/sluice/media/files/fragments"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/phone/audio"
	"sluice.dev/sluice/media/phone/digest"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/media/voice"
	"sluice.dev/sluice/platform/http/httpapi"
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

// seen is all that a model can be asked for.
var subtitles = []onair.Rendition{{Language: "en", Label: "English"}}

var seen = vision.Ask{Features: []string{vision.Texts, vision.Descriptions, vision.Objects}}

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
		{name: "media/analytics: ParseRange", read: formed(func(f *form.Form, q url.Values) { analytics.ParseRange(f, q, now) }), forms: pages},
		{name: "media/live/streams: ParseFilter", read: formed(func(f *form.Form, q url.Values) { streams.ParseFilter(f, q) }), forms: pages},
		{name: "media/assets: ParseFilter", read: formed(func(f *form.Form, q url.Values) { assets.ParseFilter(f, assets.VOD, q) }), forms: pages},
		{name: "media/voice: Parse", read: func(in []byte) error { _, err := voice.Parse("application/json", in, nil); return err }, forms: in(`{"text":%s}`, `{"text":"a","voice":%s}`)},
		{name: "media/voice: Parse of a text", read: func(in []byte) error { _, err := voice.Parse("text/plain", in, nil); return err }, forms: texts("%s")},
		{name: "media/vision: Parse", read: query(func(q url.Values) error { _, err := vision.Parse(q); return err }), forms: texts("features=%s", "times=1,%s", "language=%s", "prompt=%s")},
		{name: "media/vision: ParseTable", read: quietly(func(in []byte) { vision.ParseTable(in, 1) }), forms: lines("level\n", "5\t1\t1\t1\t1\t1\t40\t35\t53\t25\t97.1\tword\n")},
		{name: "media/vision: ParseAnswer", read: quietly(func(in []byte) { vision.ParseAnswer(string(in), seen, &vision.Picture{}) }), forms: in(`{"objects":%s}`, `{"text":%s}`)},
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
		{name: "media/files/fragments: Read", read: quietly(func(in []byte) { _, _ = fragments.Read(bytes.NewReader(in), int64(len(in))) }), forms: films, multiple: 256, constant: 1 << 20},
		{name: "media/live/aes67: ParseSDP, ParseSAP", read: quietly(func(in []byte) {
			_, _ = aes67.ParseSDP(string(in))
			_, _ = aes67.ParseSAP(in)
		}), forms: lines("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=a\r\nc=IN IP4 239.1.1.1/1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 97\r\n",
			"a=rtpmap:97 L24/48000/2\r\n", "a=source-filter: incl IN IP4 239.1.1.1 192.0.2.1\r\n", "a=ptime:1\r\n", "m=audio 5004 RTP/AVP 97\r\n", "c=IN IP4 239.1.1.1\r\n")},
		{name: "media/files/mp4: Parse", read: quietly(func(in []byte) { _, _ = mp4.Parse(bytes.NewReader(in), int64(len(in))) }), forms: films},
		{name: "media/phone/sdp: Read", read: quietly(func(in []byte) { _, _ = sdp.Read(in) }),
			forms: texts("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0%s\r\n"), multiple: 128, constant: 128 << 10},
		{name: "media/phone/digest: Read", read: quietly(func(in []byte) { digest.Read(string(in)) }), forms: texts(`Digest username="%s", realm="sluice"`), multiple: 64, constant: 64 << 10},
		{name: "media/phone/audio: ReadInfo", read: quietly(func(in []byte) { audio.ReadInfo("application/dtmf-relay", in) }), forms: texts("Signal=5\r\nDuration=%s")},
		{name: "media/live/moq/wire: ReadMessage, ParseRequest", read: moqControl, forms: moqMessages, multiple: 400},
		{name: "media/live/moq/wire: ReadSubgroup, ReadObject", read: moqObjects, forms: moqStreams},
		{name: "media/live/moq/packaging: ParseChunk", read: quietly(func(in []byte) { _, _ = packaging.ParseChunk(in) }), forms: moqChunks},
		{name: "media/live/moq/packaging: ParseCatalog, ParseTrack", read: quietly(func(in []byte) { _, _ = packaging.ParseCatalog(in) }),
			forms: in(`{"tracks":%s}`, `{"tracks":[{"initData":%s}]}`, `{"video":{"renditions":%s}}`), multiple: 400, constant: 1 << 20},
		{name: "media/captions: Parse", read: quietly(func(in []byte) { _, _ = captions.Parse(string(in)) }),
			forms: lines("WEBVTT\n\n", "00:00.000 --> 00:01.000\na\n\n", "1\n00:00:00,000 --> 00:00:01,000\na\n\n", "-->\n", "NOTE a\n\n", "STYLE\n\n",
				"<b>", "<00:00.000>", "00:00.000 --> 00:01.000 line:0 position:0\n")},
		{name: "media/captions: Cues", read: quietly(func(in []byte) { captions.Cues(string(in), 20_000) }),
			forms: lines("WEBVTT\n\n", "00:00.000 --> 00:01.000\na\n\n", "00:00.000 --> 00:01.000\n", "a\n", "<b>", "<", "&amp;", "-->\n"), multiple: 64},
		{name: "media/editor: Check", read: func(in []byte) error {
			var asked editor.Input
			if err := httpapi.Unmarshal(in, &asked); err != nil {
				return err
			}
			return asked.Check(func(id string) (editor.Source, string) {
				return editor.Source{FileID: id, Length: 9, Width: 16, Height: 16}, ""
			})
		}, forms: in(`{"timeline":{"clips":%s}}`, `{"timeline":{"clips":[{"asset_id":%s}]}}`, `{"timeline":{"clips":[{"asset_id":"a"}],"overlays":%s}}`,
			`{"timeline":{"clips":[{"asset_id":"a"}],"overlays":[{"type":"image","image":%s}]}}`, `{"timeline":{"clips":[{"asset_id":"a"}],"overlays":[{"type":"text","text":%s}]}}`),
			multiple: 160, constant: 4 << 20},
		{name: "media/transcribe/transcript: Estimate", read: quietly(func(in []byte) { spoken(transcript.Estimate(string(in), make([]int16, 2*transcript.Rate), 0)) }), forms: lines("It was, ", "a ", "a. ", "1984 ")},
		{name: "media/transcribe/speech: Read", read: quietly(func(in []byte) {
			t := transcript.Transcript{Duration: 2}
			_ = speech.Read(bytes.NewReader(in), make([]int16, 2*transcript.Rate), &t)
			spoken(t.Words)
		}), forms: lines("", "0.1 -- 0.2: a\n", "0 -- 0.02: a b c d e f g h\n", "9 -- 8: a\n", " -- : \n")},
		{name: "media/captions/onair: Multivariant", read: quietly(func(in []byte) { _ = onair.Multivariant(in, subtitles) }), forms: lines("#EXTM3U\n", "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n")},
		{name: "media/captions/onair: ParsePiece, ParseList", read: func(in []byte) error {
			_, piece := onair.ParsePiece(string(in))
			if _, list := onair.ParseList(string(in)); piece || list {
				return nil
			}
			return errors.New("no file of captions")
		}, forms: texts("captions_%s_1_1_1.vtt", "captions_en_%s_1_1.vtt", "captions_%s.m3u8")},
		{name: "media/playback: Sign", read: quietly(func(in []byte) { _, _ = playback.Sign(in, "token") }),
			forms: lines("#EXTM3U\n", "seg.mp4\n", "#EXT-X-MAP:URI=\"init.mp4\"\n", `URI="a",`, "#URI=\"", "seg.mp4?a=b&c=d\n", "#\n", "https://a.b/c\n"), multiple: 1 << 10},
	}
}

// spoken joins words to a transcript, and writes it.
func spoken(words []transcript.Word) {
	var t transcript.Transcript
	t.Add(transcript.Transcript{Duration: 2, Words: words}, 0)
	_ = t.VTT()
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
