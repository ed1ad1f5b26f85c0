package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/runtime/chat/tokens"
)

// relay passes one stream on to the client.
type relay struct {
	request Request
	stream  Stream
	out     *sse.Writer
	cancel  context.CancelCauseFunc // ends the provider's stream
	docs    string

	head    head
	known   seen
	meter   tokens.Meter
	usage   *Usage // as the provider said
	held    []byte // the finish chunk, until the usage is known
	outcome string // how it ended: finished, cut or failed
	buf     []byte

	timer     *time.Timer
	keepAlive time.Duration
	idle      time.Duration
	last      atomic.Int64 // when the provider sent something
	finishing atomic.Bool  // held is there
}

// Why a stream is cut off from our side.
var (
	errIdle   = &apierror.Error{Code: decision.GatewayTimeout, Message: "The provider fell silent."}
	errLinger = errors.New("the provider said that it had finished, and did not end the stream")
	errCut    = errors.New("the provider went beyond the limit of tokens")
)

// run relays the stream from its first event on, and returns what to charge.
func (r *relay) run(ctx context.Context, data []byte) Usage {
	r.watch(ctx)
	defer r.timer.Stop()
	var err error
	for err == nil {
		r.last.Store(time.Now().UnixNano())
		if err = r.take(data); err == nil {
			data, err = r.stream.Next()
		}
	}
	// A cause of ours says more than the error that it led to.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errCut) {
		err = cause
	}
	return r.end(err)
}

// take handles one event. The errors it returns end the stream.
func (r *relay) take(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	// The order of the checks matters: an error may come in a chunk with
	// choices, and a usage with or without them.
	c, ok := parse(data, &r.known)
	switch {
	case !ok:
		return apierror.Errorf(decision.BadGateway, "The provider sent something that is not a chunk.")
	case c.has[fieldError]:
		return providerError(data, c.fields[fieldError].Value)
	}
	r.head = c.head(r.head)
	u, counted := c.usage()
	if counted {
		r.usage = &u
	}
	if c.choices == 0 && (counted || !c.has[fieldChoices]) {
		return nil // the usage goes out at the end; without choices clients fail
	}
	fits := r.meter.Add(string(c.text))
	if !r.meter.More(c.extra) || fits < len(c.text) {
		return r.cut(&c, fits)
	}
	c.normalize(r.head)
	return r.pass(&c)
}

// pass sends a chunk, or holds it if it is the finish chunk.
func (r *relay) pass(c *chunk) error {
	if err := r.release(); err != nil {
		return err
	}
	if c.finishes {
		r.held = c.edits.Apply(nil, c.data)
		r.finishing.Store(true)
		return nil
	}
	// A chunk that needs no change is sent from the buffer it was read into.
	data := c.data
	if len(c.edits) > 0 {
		r.buf = c.edits.Apply(r.buf[:0], data)
		data = r.buf
	}
	return r.send(data, r.stream.Ready())
}

// release sends a finish chunk that turns out not to be the last one.
func (r *relay) release() error {
	if r.held == nil {
		return nil
	}
	held := r.held
	r.held = nil
	r.finishing.Store(false)
	return r.send(held, true)
}

// cut ends a stream that goes on beyond the limit: the client gets the part of
// the chunk that fits, and a finish of ours. What the provider says that it
// used counts no more.
func (r *relay) cut(c *chunk, fits int) error {
	r.usage = nil
	if err := r.release(); err != nil {
		return err
	}
	if choice, ok := c.prefix(fits); ok {
		if err := r.send(r.head.json(choice, ""), true); err != nil {
			return err
		}
	}
	r.held = r.head.json(finished(r.known, "length"), "")
	r.cancel(errCut)
	return errCut
}

// end finishes the stream for the client. err is why it ended.
func (r *relay) end(err error) Usage {
	finished := errors.Is(err, io.EOF) || errors.Is(err, errCut) ||
		r.held != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errLinger))
	switch {
	case !finished:
		r.outcome = "failed"
		return r.fail(err)
	case errors.Is(err, errCut):
		r.outcome = "cut"
	default:
		r.outcome = "finished"
	}
	u := r.total()
	r.finish(u)
	return u
}

// finish sends the usage in its two places, and [DONE].
func (r *relay) finish(u Usage) {
	if r.held == nil {
		r.held = r.head.json(finished(r.known, "stop"), "")
	}
	// The finish chunk is an object, so its last byte closes it.
	usage := u.JSON()
	last := jsonscan.Root(r.held).To - 1
	held := append(r.held[:last:last], `,"`+usageMarker+`":`+usage+`}`...)
	if r.send(held, true) == nil && r.send(r.head.json("", `,"usage":`+usage), true) == nil {
		_ = r.send([]byte("[DONE]"), false) // the client has all that matters
	}
}

// fail tells the client, if it is still there, why the stream breaks off. It
// pays for what was produced, and for the prompt at least: the provider has
// begun.
func (r *relay) fail(err error) Usage {
	if e, ok := errors.AsType[*apierror.Error](err); !ok {
		err = apierror.Errorf(decision.BadGateway, "The provider's stream broke off.")
	} else {
		err = e
	}
	if r.release() == nil {
		_ = r.send(errorEvent(err, r.request.ID, r.docs), false) // nothing can be done about a client that is gone
	}
	return r.total()
}

// total is the provider's usage, or an estimate.
func (r *relay) total() Usage {
	if r.usage != nil {
		return *r.usage
	}
	return Usage{Prompt: tokens.Prompt(r.request.Body), Completion: r.meter.Total(), Estimated: true}
}

// send writes an event. A client that is gone ends the provider's stream.
func (r *relay) send(data []byte, more bool) error {
	err := r.out.Event(data, more)
	if err != nil {
		r.cancel(err)
	}
	return err
}
