package main

import (
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/traffic"
)

// Bounds of what is handed over: what one parcel holds at least when there is more, which with
// the largest batch stays below traffic.MaxParcel, and how much waits at most while the agent
// does not answer.
const (
	trafficParcelBytes  = 64 << 10
	trafficWaitingBytes = 1 << 20
)

// trafficSender takes what workers have counted for metrics, and hands it to the edge's agent.
// Parcels go one at a time and each stays as it is until the agent has it, which tells one that
// it has had already by its number.
type trafficSender struct {
	queue    uint32
	boot     string // of this program: a new one never repeats an old one's numbers
	sequence uint64 // of the parcel under way, or the last one
	parcel   []byte // nil: none under way
	sending  bool
	retryIn  int // ticks until the parcel is sent again

	waiting [][]byte // batches for the parcels to come
	size    int      // of waiting, in bytes

	offeredAt int64 // second of the last offer
	lost      proxywasm.MetricCounter
	failing   bool // the last parcel failed, and that was logged
}

// start opens the queue.
func (c *trafficSender) start() (err error) {
	c.boot = strconv.FormatInt(time.Now().UnixNano(), 36)
	c.lost = proxywasm.DefineCounterMetric("sluice_traffic_batches_lost_total")
	c.queue, err = wasmhost.Traffic.Register()
	return err
}

// tick takes what workers have handed over, and sends it unless a parcel is under way.
func (c *trafficSender) tick(cfg *config) {
	if now := time.Now().Unix(); now != c.offeredAt {
		wasmhost.Traffic.Offer(c.queue, now)
		c.offeredAt = now
	}
	c.collect()
	if c.parcel == nil && len(c.waiting) > 0 {
		c.pack()
	}
	if c.retryIn > 0 {
		c.retryIn--
	} else if c.parcel != nil && !c.sending {
		c.send(cfg)
	}
}

// collect empties the queue. What does not fit pushes out the oldest that waits.
func (c *trafficSender) collect() {
	for {
		b, err := proxywasm.DequeueSharedQueue(c.queue)
		if err != nil || len(b) == 0 {
			break
		}
		c.waiting, c.size = append(c.waiting, b), c.size+len(b)
	}
	for c.size > trafficWaitingBytes {
		c.lost.Increment(1)
		c.size -= len(c.waiting[0])
		c.waiting = c.waiting[1:]
	}
}

// pack makes the next parcel.
func (c *trafficSender) pack() {
	c.sequence++
	p := traffic.Parcel{Boot: c.boot, Sequence: c.sequence}
	for len(c.waiting) > 0 && len(p.Batches) < trafficParcelBytes {
		p.Batches = append(p.Batches, c.waiting[0]...)
		c.size -= len(c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	c.parcel = p.Append(nil)
}

func (c *trafficSender) send(cfg *config) {
	headers := append(cfg.headers("POST", edgeapi.TrafficPath), [2]string{"content-type", "application/octet-stream"})
	if _, err := proxywasm.DispatchHttpCall(cfg.Cluster, headers, c.parcel, nil, meterTimeoutMillis, c.receive); err != nil {
		c.fail("dispatch: " + err.Error())
		return
	}
	c.sending = true
}

// receive forgets the parcel when the agent has it, and when it will never take it: one of a
// release that does not know of this, or none at all, answers 404. Otherwise it is sent again.
func (c *trafficSender) receive(headers, _, _ int) {
	c.sending = false
	switch status := answerStatus(headers); {
	case status >= 200 && status < 300:
		c.parcel, c.failing = nil, false
	case status >= 400 && status < 500:
		c.parcel = nil
		c.lost.Increment(1)
		c.fail("refused with status " + strconv.Itoa(status) + " and given up")
	default:
		c.fail("status " + strconv.Itoa(status))
	}
}

func (c *trafficSender) fail(why string) {
	if c.parcel != nil {
		c.retryIn = meterRetryTicks
	}
	if !c.failing {
		proxywasm.LogWarn("keysync: the agent does not take what is counted for metrics: " + why)
	}
	c.failing = true
}
