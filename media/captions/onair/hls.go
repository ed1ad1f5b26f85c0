package onair

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/transcribe/transcript"
)

// Rendition is a language in which a stream on air has captions.
type Rendition struct {
	Language string `db:"language"`
	Label    string `db:"label"`
}

// group is what a multivariant playlist calls the captions.
const group = "captions"

// Multivariant adds the captions to a playlist that lists the variants of a stream (RFC
// 8216, 4.3.4.1 and 4.3.4.2.1). It takes time and memory linear in playlist, and 300 bytes
// for each rendition and each variant.
func Multivariant(list []byte, captions []Rendition) []byte {
	if len(captions) == 0 {
		return list
	}
	var out bytes.Buffer
	done := false
	for line := range bytes.Lines(list) {
		if !bytes.HasPrefix(line, []byte("#EXT-X-STREAM-INF:")) {
			out.Write(line)
			continue
		}
		if !done {
			for i, c := range captions {
				chosen := "NO"
				if i == 0 {
					chosen = "YES"
				}
				fmt.Fprintf(&out, "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=%q,NAME=\"%s\",LANGUAGE=%q,DEFAULT=%s,AUTOSELECT=YES,FORCED=NO,URI=%q\n",
					group, plain.Replace(c.Label), c.Language, chosen, "captions_"+c.Language+".m3u8")
			}
			done = true
		}
		out.Write(bytes.TrimRight(line, "\r\n"))
		fmt.Fprintf(&out, ",SUBTITLES=%q\n", group)
	}
	return out.Bytes()
}

// plain makes what an attribute cannot hold into what it can.
var plain = strings.NewReplacer(`"`, "'", "\n", " ", "\r", " ")

// Piece is the captions of one segment: of a language, from From on for Length by the
// clock of the wall; Start is when that begins on the clock of the stream.
type Piece struct {
	Language string
	From     time.Time
	Start    time.Duration
	Length   time.Duration
}

// Playlist lists the captions in a language beside the segments of a stream: as many, as
// long, with the same numbers and dates, so that players take both for one timeline.
func Playlist(t dash.Timeline, language string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:%d\n", int(math.Ceil(t.Longest.Seconds())))
	if len(t.Segments) > 0 {
		fmt.Fprintf(&out, "#EXT-X-MEDIA-SEQUENCE:%d\n", t.Segments[0].Number)
	}
	for _, s := range t.Segments {
		p := Piece{language, t.Begun.Add(s.Start), s.Start, s.Duration}
		fmt.Fprintf(&out, "#EXT-X-PROGRAM-DATE-TIME:%s\n#EXTINF:%.5f,\n%s\n", p.From.UTC().Format("2006-01-02T15:04:05.000Z"), s.Duration.Seconds(), p.name())
	}
	return out.Bytes()
}

// name is the piece's file, which says all that there is to know of it: no engine has to
// be asked again.
func (p Piece) name() string {
	return fmt.Sprintf("captions_%s_%d_%d_%d.vtt", p.Language, p.From.UnixMilli(), p.Start.Milliseconds(), p.Length.Milliseconds())
}

// maxPiece bounds the length of a piece.
const maxPiece = time.Minute

var (
	pieceName = regexp.MustCompile(`^captions_([a-z0-9-]{2,60})_([0-9]{1,14})_([0-9]{1,12})_([0-9]{1,5})\.vtt$`)
	listName  = regexp.MustCompile(`^captions_([a-z0-9-]{2,60})\.m3u8$`)
)

// ParseList reads the name of a playlist of captions; false: it is none.
func ParseList(file string) (language string, ok bool) {
	if m := listName.FindStringSubmatch(file); m != nil {
		return m[1], true
	}
	return "", false
}

// ParsePiece reads the name of a piece; false: it is none, or longer than a minute. It
// takes time linear in the name.
func ParsePiece(file string) (p Piece, ok bool) {
	m := pieceName.FindStringSubmatch(file)
	if m == nil {
		return p, false
	}
	var ms [3]int64
	for i := range ms {
		ms[i], _ = strconv.ParseInt(m[2+i], 10, 64) // fourteen digits
	}
	p = Piece{m[1], time.UnixMilli(ms[0]), time.Duration(ms[1]) * time.Millisecond, time.Duration(ms[2]) * time.Millisecond}
	return p, p.Length <= maxPiece
}

// header begins a piece. Its times are those of the clock of the stream: 0 there is 0 of
// MPEG's (RFC 8216, 3.5).
const header = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n"

// write adds those cues of a schedule, which begins at a time of the stream's
// clock, that are seen in a piece. Each has a name, by which players know that it was in the
// piece before too.
func write(out *strings.Builder, p Piece, id int64, cues []transcript.Cue, at float64) {
	from, to := p.Start.Seconds(), (p.Start + p.Length).Seconds()
	for i, c := range cues {
		c.Start, c.End = max(0, at+c.Start), at+c.End
		if c.End > from && c.Start < to {
			fmt.Fprintf(out, "\n%d-%d", id, i)
			c.WriteVTT(out)
		}
	}
}
