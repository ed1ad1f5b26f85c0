package wire

// Filters of a subscription (section 5.1.2).
const (
	NextGroupStart = 0x1
	LargestObject  = 0x2
	AbsoluteStart  = 0x3
	AbsoluteRange  = 0x4
)

// Error codes of requests (sections 9.8, 9.25); those that are sent here.
const (
	RequestInternal     = 0x0
	RequestUnauthorized = 0x1
	RequestTimeout      = 0x2
	RequestNotSupported = 0x3
	RequestNoTrack      = 0x4 // of a subscription: the track does not exist
)

// DoneTrackEnded is a status code of PUBLISH_DONE (section 9.12).
const DoneTrackEnded = 0x2

// Codes that end a session (section 3.4).
const (
	CloseNoError       = 0x0
	CloseInternal      = 0x1
	CloseUnauthorized  = 0x2
	CloseProtocol      = 0x3
	CloseTooMany       = 0x7
	CloseControlLate   = 0x11
	CloseVersionFailed = 0x15
)

// Request is SUBSCRIBE (section 9.7), and with it TRACK_STATUS, which has its form.
type Request struct {
	ID         uint64
	Namespace  Namespace
	Name       string
	Priority   byte
	GroupOrder byte
	Forward    byte
	Filter     uint64
	Start      Location
	EndGroup   uint64
}

// ParseRequest reads the body of a SUBSCRIBE.
func ParseRequest(body []byte) (r Request, err error) {
	d := Decode(body)
	r.ID, r.Namespace, r.Name = d.Varint(), d.Namespace(), string(d.Bytes())
	if len(r.Name) > maxFullName {
		d.fail("name")
	}
	r.Priority, r.GroupOrder, r.Forward, r.Filter = d.Byte(), d.Byte(), d.Byte(), d.Varint()
	if r.GroupOrder > 2 || r.Forward > 1 || r.Filter < NextGroupStart || r.Filter > AbsoluteRange {
		d.fail("field out of range")
	}
	if r.Filter >= AbsoluteStart {
		r.Start = d.Location()
	}
	if r.Filter == AbsoluteRange {
		r.EndGroup = d.Varint()
	}
	d.Parameters()
	return r, d.Err()
}

// Message is r as SUBSCRIBE.
func (r Request) Message() Message {
	e := Encoder(nil).Varint(r.ID).Namespace(r.Namespace).Text(r.Name).Byte(r.Priority).Byte(r.GroupOrder).Byte(r.Forward).Varint(r.Filter)
	if r.Filter >= AbsoluteStart {
		e = e.Varint(r.Start.Group).Varint(r.Start.Object)
	}
	if r.Filter == AbsoluteRange {
		e = e.Varint(r.EndGroup)
	}
	return Message{Subscribe, e.Varint(0)}
}

// Accepted is SUBSCRIBE_OK (section 9.8).
type Accepted struct {
	ID         uint64
	Alias      uint64
	GroupOrder byte
	Exists     bool
	Largest    Location // where Exists
}

// ParseAccepted reads the body of a SUBSCRIBE_OK.
func ParseAccepted(body []byte) (a Accepted, err error) {
	d := Decode(body)
	a.ID, a.Alias = d.Varint(), d.Varint()
	d.Varint() // when the subscription expires: it is renewed by being used
	a.GroupOrder = d.Byte()
	exists := d.Byte()
	if exists > 1 {
		d.fail("content exists")
	}
	if a.Exists = exists == 1; a.Exists {
		a.Largest = d.Location()
	}
	d.Parameters()
	return a, d.Err()
}

// Message is a as SUBSCRIBE_OK.
func (a Accepted) Message() Message {
	e := Encoder(nil).Varint(a.ID).Varint(a.Alias).Varint(0).Byte(a.GroupOrder)
	if a.Exists {
		e = e.Byte(1).Varint(a.Largest.Group).Varint(a.Largest.Object)
	} else {
		e = e.Byte(0)
	}
	return Message{SubscribeOK, e.Varint(0)}
}

// Refusal is what all messages that refuse a request have in common.
type Refusal struct {
	ID     uint64
	Code   uint64
	Reason string
}

// Error describes it.
func (r Refusal) Error() string { return r.Reason }

// ParseRefusal reads the body of SUBSCRIBE_ERROR and its like.
func ParseRefusal(body []byte) (r Refusal, err error) {
	d := Decode(body)
	r.ID, r.Code, r.Reason = d.Varint(), d.Varint(), string(d.Bytes())
	if len(r.Reason) > maxReason {
		d.fail("reason")
	}
	return r, d.Err()
}

// Message is r as a message of type t.
func (r Refusal) Message(t Type) Message {
	return Message{t, Encoder(nil).Varint(r.ID).Varint(r.Code).Reason(r.Reason)}
}

// Setup is CLIENT_SETUP or SERVER_SETUP (section 9.3).
type Setup struct {
	Versions     []uint64 // one, in SERVER_SETUP
	Path         string   // on QUIC itself: path and query
	MaxRequestID uint64
}

// maxVersions bounds those that a client offers.
const maxVersions = 64

// ParseSetup reads the body of m, which is one of the two.
func ParseSetup(m Message) (s Setup, err error) {
	d := Decode(m.Body)
	n := uint64(1)
	if m.Type == ClientSetup {
		n = d.Varint()
	}
	if n > maxVersions {
		d.fail("versions")
		n = 0
	}
	for range n {
		s.Versions = append(s.Versions, d.Varint())
	}
	p := d.Parameters()
	s.Path, s.MaxRequestID = p.Texts[ParamPath], p.Ints[ParamMaxRequestID]
	return s, d.Err()
}

// Message is s as a message of type t.
func (s Setup) Message(t Type) Message {
	var e Encoder
	if t == ClientSetup {
		e = e.Varint(uint64(len(s.Versions)))
	}
	for _, v := range s.Versions {
		e = e.Varint(v)
	}
	if s.Path == "" {
		return Message{t, e.Varint(1).Varint(ParamMaxRequestID).Varint(s.MaxRequestID)}
	}
	return Message{t, e.Varint(2).Varint(ParamPath).Text(s.Path).Varint(ParamMaxRequestID).Varint(s.MaxRequestID)}
}

// Announcement is PUBLISH_NAMESPACE or SUBSCRIBE_NAMESPACE (sections 9.23, 9.28).
type Announcement struct {
	ID        uint64
	Namespace Namespace
}

// ParseAnnouncement reads the body of either.
func ParseAnnouncement(body []byte) (a Announcement, err error) {
	d := Decode(body)
	a.ID, a.Namespace = d.Varint(), d.Namespace()
	d.Parameters()
	return a, d.Err()
}

// Message is a as a message of type t.
func (a Announcement) Message(t Type) Message {
	return Message{t, Encoder(nil).Varint(a.ID).Namespace(a.Namespace).Varint(0)}
}

// Number is a message of type t that is one number.
func Number(t Type, v uint64) Message { return Message{t, Encoder(nil).Varint(v)} }

// ParseNumber reads the first number of a body, which is that of its request.
func ParseNumber(body []byte) (uint64, error) {
	d := Decode(body)
	v := d.Varint()
	return v, d.err
}

// Done is PUBLISH_DONE (section 9.12): a subscription has ended after streams many
// streams.
func Done(id, status, streams uint64, reason string) Message {
	return Message{PublishDone, Encoder(nil).Varint(id).Varint(status).Varint(streams).Reason(reason)}
}
