// Package source publishes sound to the media engine: samples go through ffmpeg, which
// makes AAC of them, and from there by RTMP to the engine, as the publisher of a stream.
// ffmpeg has neither network nor files: what a stranger said reaches it as samples, and
// leaves it as AAC.
package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Config says what is published, and where. All of it is required, but Dir.
type Config struct {
	FFmpeg  string        // path
	Dir     string        // for its empty folder; empty: os.TempDir
	RTMP    string        // host and port of the engine
	Path    string        // in the engine, such as live/play_…
	Key     string        // that the engine asks about
	Rate    int           // of the samples, in Hz
	Longest time.Duration // that it may last
}

// The sound that is published: AAC-LC, one channel.
const (
	rate    = 48000
	perUnit = 1024 // samples of a unit of AAC
	memory  = 512 << 20
)

// publishTimeout bounds how long the engine may take for each message.
const publishTimeout = 5 * time.Second

// waiting is how many frames may wait for ffmpeg; more are dropped: sound is live.
const waiting = 50

// Source is sound on its way to the engine.
type Source struct {
	client *gortmplib.Client
	frames chan []byte
	done   chan struct{}
	cancel context.CancelFunc
	once   sync.Once
	err    error // why it ended; to be read when done is closed
}

// Open begins to publish. It fails when the engine does not want the publisher, such as
// because the path has one.
func Open(ctx context.Context, c Config) (*Source, error) {
	binary, err := filepath.Abs(c.FFmpeg)
	if err != nil {
		return nil, fmt.Errorf("find ffmpeg: %w", err)
	}
	dialing, stop := context.WithTimeout(ctx, publishTimeout)
	defer stop()
	client := &gortmplib.Client{Publish: true,
		URL: &url.URL{Scheme: "rtmp", Host: c.RTMP, Path: "/" + c.Path, RawQuery: url.Values{"key": {c.Key}}.Encode()}}
	if err := client.Initialize(dialing); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	folder, err := os.MkdirTemp(c.Dir, "sluice-phone-")
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("make a folder for ffmpeg: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Longest)
	s := &Source{client: client, frames: make(chan []byte, waiting), done: make(chan struct{}), cancel: cancel}
	job := sandbox.Job{Program: binary, Args: arguments(c.Rate), Folder: folder, Memory: memory, CPU: c.Longest, Live: true, Talk: s.talk}
	go s.heed()
	go func() {
		err := job.Run(ctx)
		s.end(err)
		client.Close()
		_ = os.RemoveAll(folder) // empty, and the system's to clear if it stays
	}()
	return s, nil
}

// arguments are those of ffmpeg, for samples of rate.
func arguments(from int) []string {
	return []string{"-nostdin", "-hide_banner", "-loglevel", "error", "-threads", "1", "-protocol_whitelist", "pipe", "-probesize", "32", "-analyzeduration", "0",
		"-f", "s16le", "-ar", strconv.Itoa(from), "-ac", "1", "-i", "pipe:0",
		"-map_metadata", "-1", "-c:a", "aac", "-b:a", "64k", "-ar", strconv.Itoa(rate), "-ac", "1", "-flush_packets", "1", "-f", "adts", "pipe:1"}
}

// Write hands samples on. It does not wait: where the engine is slow, they are dropped.
func (s *Source) Write(samples []int16) {
	frame := make([]byte, 0, 2*len(samples))
	for _, v := range samples {
		frame = binary.LittleEndian.AppendUint16(frame, uint16(v)) // #nosec G115 -- two's complement
	}
	select {
	case s.frames <- frame:
	default:
	}
}

// Done is closed when nothing is published any more.
func (s *Source) Done() <-chan struct{} { return s.done }

// Close ends it.
func (s *Source) Close() {
	s.end(nil)
	<-s.done
}

// end ends it, and keeps the first error.
func (s *Source) end(err error) {
	s.once.Do(func() {
		s.err = err
		s.cancel()
		close(s.done)
	})
}

// heed reads what the engine says, which is nothing but that it has closed: a stream
// was stopped, or the publisher breaks a rule.
func (s *Source) heed() {
	for {
		if _, err := s.client.Read(); err != nil {
			s.end(err)
			return
		}
	}
}

// talk feeds ffmpeg and publishes what it makes, until either ends.
func (s *Source) talk(in io.Writer, out io.Reader) error {
	published := make(chan error, 1)
	go func() { published <- s.publish(out) }()
	for {
		select {
		case <-s.done:
			return errEnded
		case err := <-published:
			return err
		case frame := <-s.frames:
			if _, err := in.Write(frame); err != nil {
				return err
			}
		}
	}
}

// errEnded says that whoever published has had enough.
var errEnded = errors.New("the source has ended")

// publish sends the units of AAC in out to the engine.
func (s *Source) publish(out io.Reader) error {
	track := &gortmplib.Track{Codec: &codecs.MPEG4Audio{Config: &mpeg4audio.AudioSpecificConfig{Type: mpeg4audio.ObjectTypeAACLC, SampleRate: rate, ChannelConfig: 1}}}
	w := &gortmplib.Writer{Conn: s.client, Tracks: []*gortmplib.Track{track}}
	if err := s.hurry(); err != nil {
		return err
	}
	if err := w.Initialize(); err != nil {
		return err
	}
	units := bufio.NewReaderSize(out, 16<<10)
	for n := time.Duration(0); ; n++ {
		unit, err := readUnit(units)
		if err != nil {
			return err
		}
		if err := s.hurry(); err != nil {
			return err
		}
		if err := w.WriteMPEG4Audio(track, n*perUnit*time.Second/rate, unit); err != nil {
			return err
		}
	}
}

// hurry bounds the next message to the engine.
func (s *Source) hurry() error {
	return s.client.NetConn().SetWriteDeadline(time.Now().Add(publishTimeout))
}

// errADTS says that what ffmpeg wrote is not what it was asked for.
var errADTS = errors.New("no unit of ADTS")

// readUnit reads one frame of ADTS (ISO/IEC 13818-7, 6.2) and returns what is in it. A
// frame has at most 8 KiB.
func readUnit(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(7)
	if err != nil {
		return nil, err
	}
	if head[0] != 0xff || head[1]&0xf6 != 0xf0 {
		return nil, errADTS
	}
	size, skip := int(head[3]&3)<<11|int(head[4])<<3|int(head[5])>>5, 7
	if head[1]&1 == 0 { // with a checksum
		skip = 9
	}
	if size <= skip {
		return nil, errADTS
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	return bytes.Clone(frame[skip:]), nil
}
