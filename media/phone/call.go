package phone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// The states of a call.
const (
	Queued     = "queued"      // outbound, not dialled yet
	Ringing    = "ringing"     // not answered yet
	InProgress = "in_progress" // its sound is the stream's
	Completed  = "completed"   // was answered, and ended
	Failed     = "failed"      // was never answered, or was cut off by a fault of ours
)

// States lists every state.
var States = []string{Queued, Ringing, InProgress, Completed, Failed}

// Inbound and Outbound are the directions of calls.
const (
	Inbound  = "inbound"
	Outbound = "outbound"
)

// Reason says why a call ended.
type Reason string

// The reasons.
const (
	ByCaller    Reason = "remote_hangup"     // the other side hung up
	ByOwner     Reason = "hangup"            // POST …/hangup
	ByStream    Reason = "stream_stopped"    // the stream was stopped, or its source closed
	TooLong     Reason = "max_duration"      // of the line
	NoSound     Reason = "no_media"          // a minute without sound from the other side
	Canceled    Reason = "canceled"          // the caller hung up before the answer
	Busy        Reason = "busy"              // the stream has a source already, or the other side is busy
	TooMany     Reason = "too_many_calls"    // of the account, or of all
	NoCodec     Reason = "codec_unsupported" // neither Opus nor G.711 was offered
	NoAnswer    Reason = "no_answer"
	Declined    Reason = "declined"    // by the other side
	Unreachable Reason = "unreachable" // the trunk, or a number that it does not know
	Interrupted Reason = "interrupted" // the process that held the call ended
	Faulty      Reason = "error"       // of ours; the log says more
)

// Call is one row of phone_calls.
type Call struct {
	ID         string     `db:"id"`
	Owner      string     `db:"owner"`
	Account    string     `db:"account"`
	LineID     string     `db:"line_id"`
	StreamID   string     `db:"stream_id"`
	Direction  string     `db:"direction"`
	State      string     `db:"state"`
	Remote     string     `db:"remote"` // who calls, or who is called: sip:user@host
	Codec      string     `db:"codec"`
	Reason     string     `db:"reason"`
	Hangup     bool       `db:"hangup"`
	CreatedAt  time.Time  `db:"created_at"`
	AnsweredAt *time.Time `db:"answered_at"`
	EndedAt    *time.Time `db:"ended_at"`
}

// CallView is a call as callers see it.
type CallView struct {
	ID         string     `json:"id"`
	LineID     string     `json:"line_id"`
	StreamID   string     `json:"stream_id"`
	Direction  string     `json:"direction"`
	From       string     `json:"from"`
	To         string     `json:"to"`
	State      string     `json:"state"`
	Codec      *string    `json:"codec"`
	Reason     *string    `json:"reason"`
	Duration   *int       `json:"duration"` // seconds from answer to end
	CreatedAt  time.Time  `json:"created_at"`
	AnsweredAt *time.Time `json:"answered_at"`
	EndedAt    *time.Time `json:"ended_at"`
}

// callView shows c.
func (v Service) callView(c Call) CallView {
	own := "sip:" + c.LineID + "@" + v.Settings.Host
	out := CallView{ID: c.ID, LineID: c.LineID, StreamID: c.StreamID, Direction: c.Direction, From: c.Remote, To: own, State: c.State,
		CreatedAt: c.CreatedAt.UTC(), AnsweredAt: utc(c.AnsweredAt), EndedAt: utc(c.EndedAt)}
	if c.Direction == Outbound {
		out.From, out.To = own, c.Remote
	}
	if c.Codec != "" {
		out.Codec = &c.Codec
	}
	if c.Reason != "" {
		out.Reason = &c.Reason
	}
	if c.EndedAt != nil {
		d := c.seconds()
		out.Duration = &d
	}
	return out
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// seconds is how long an ended call lasted from its answer on.
func (c Call) seconds() int {
	if c.AnsweredAt == nil || c.EndedAt == nil {
		return 0
	}
	return max(0, int(c.EndedAt.Sub(*c.AnsweredAt).Seconds()))
}

// errBusy says that the stream has a call already.
var errBusy = errors.New("the stream has a call")

// IsBusy reports whether an error of Begin says that the stream has a source already.
func IsBusy(err error) bool {
	return errors.Is(err, errBusy) || apierror.Code(err) == decision.Stream004
}

// maxRemote bounds what is kept of a caller's address, in bytes.
const maxRemote = 200

// clean keeps of an address that a caller chose what may stand in a row and an event.
func clean(remote string) string {
	remote = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, remote[:min(len(remote), maxRemote)])
	if remote == "" {
		return "sip:anonymous@anonymous.invalid"
	}
	return remote
}

// new makes a call of l that is not stored yet.
func (v Service) new(l Line, direction, state, remote string) Call {
	return Call{ID: ident.New("call"), Owner: l.Owner, Account: l.Account, LineID: l.ID, StreamID: l.StreamID, Direction: direction, State: state,
		Remote: clean(remote), CreatedAt: v.now()}
}

// Begin stores an inbound call that rings. It fails as IsBusy says when the stream has
// a source, and with STREAM_003 when the plan allows no further stream on air.
func (v Service) Begin(ctx context.Context, l Line, remote string) (Call, error) {
	c := v.new(l, Inbound, Ringing, remote)
	if err := v.Streams.Vacant(ctx, l.StreamID); err != nil {
		return c, err
	}
	return c, postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error { return insertCall(ctx, tx, c) })
}

// Refuse stores an inbound call that was not taken, and tells the account.
func (v Service) Refuse(ctx context.Context, l Line, remote string, why Reason) error {
	c := v.new(l, Inbound, Failed, remote)
	c.Reason, c.EndedAt = string(why), &c.CreatedAt
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if err := insertCall(ctx, tx, c); err != nil {
			return err
		}
		return v.emitEnded(ctx, tx, c)
	})
}

// Claim moves an outbound call from queued to ringing; false: somebody else did, or it
// has ended.
func (v Service) Claim(ctx context.Context, c Call) (bool, error) {
	tag, err := v.DB.Exec(ctx, `UPDATE phone_calls SET state = 'ringing' WHERE id = $1 AND state = 'queued'`, c.ID)
	if err != nil {
		return false, fmt.Errorf("claim call: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Answered moves a call to in_progress and emits phone.call_started.
func (v Service) Answered(ctx context.Context, c Call, codec string) error {
	now := v.now()
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE phone_calls SET state = 'in_progress', codec = $2, answered_at = $3 WHERE id = $1 AND state = 'ringing'`, c.ID, codec, now)
		if err != nil {
			return fmt.Errorf("answer call: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil // ended meanwhile
		}
		data := v.data(c)
		data["codec"] = codec
		return v.emit(ctx, tx, c, "phone.call_started", now, data)
	})
}

// End moves a call that is open to state, completed or failed, and emits
// phone.call_ended. A call that has ended already stays as it is.
func (v Service) End(ctx context.Context, c Call, state string, why Reason) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `UPDATE phone_calls SET state = $2, reason = $3, ended_at = greatest($4::timestamptz, created_at, answered_at)
			WHERE id = $1 AND ended_at IS NULL RETURNING `+callColumns, c.ID, state, string(why), v.now())
		ended, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Call])
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("end call: %w", err)
		}
		return v.emitEnded(ctx, tx, ended)
	})
}

// Interrupt ends the calls that a process before this one has left open. It is for the
// process that speaks SIP, before it takes calls.
func (v Service) Interrupt(ctx context.Context) error {
	calls, err := v.open(ctx)
	for _, c := range calls {
		if c.State != Queued || v.now().Sub(c.CreatedAt) > queuedLife {
			err = errors.Join(err, v.End(ctx, c, Failed, Interrupted))
		}
	}
	return err
}

// queuedLife is how long an outbound call may wait to be dialled.
const queuedLife = 30 * time.Second

// Wanted returns what the owners of calls ask for: the calls to dial, and the ids of
// open ones to hang up. Calls that have waited too long end here.
func (v Service) Wanted(ctx context.Context) (dial []Call, hangup []string, err error) {
	calls, err := v.open(ctx)
	for _, c := range calls {
		switch {
		case c.State != Queued && c.Hangup:
			hangup = append(hangup, c.ID)
		case c.State == Queued && c.Hangup:
			err = errors.Join(err, v.End(ctx, c, Failed, ByOwner))
		case c.State == Queued && v.now().Sub(c.CreatedAt) > queuedLife:
			err = errors.Join(err, v.End(ctx, c, Failed, Unreachable))
		case c.State == Queued:
			dial = append(dial, c)
		}
	}
	return dial, hangup, err
}

// LineFor reads the line of an outbound call, or not_found.
func (v Service) LineFor(ctx context.Context, c Call) (Line, error) {
	return lineOf(ctx, v.DB, c.Owner, c.LineID)
}

// Digit tells the account of a key that the other side has pressed, for how long, and
// whether it came as rtp (RFC 4733) or info (SIP INFO).
func (v Service) Digit(ctx context.Context, c Call, digit string, lasted time.Duration, method string) error {
	data := v.data(c)
	data["digit"], data["duration_ms"], data["method"] = digit, lasted.Milliseconds(), method
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error { return v.emit(ctx, tx, c, "phone.dtmf", v.now(), data) })
}

// data is what every event of a call says.
func (v Service) data(c Call) map[string]any {
	view := v.callView(c)
	return map[string]any{"call_id": c.ID, "line_id": c.LineID, "direction": c.Direction, "from": view.From, "to": view.To}
}

// emitEnded emits phone.call_ended.
func (v Service) emitEnded(ctx context.Context, tx pgx.Tx, c Call) error {
	data := v.data(c)
	data["state"], data["reason"], data["duration"] = c.State, c.Reason, c.seconds()
	return v.emit(ctx, tx, c, "phone.call_ended", *c.EndedAt, data)
}

// emit tells the account, if there is one.
func (v Service) emit(ctx context.Context, tx pgx.Tx, c Call, kind string, at time.Time, data map[string]any) error {
	if c.Account == "" {
		return nil
	}
	return v.Events.EmitTx(ctx, tx, events.Event{Account: c.Account, Type: kind, StreamID: c.StreamID, Time: at, Data: data})
}

// CreateCall stores an outbound call to number through the trunk.
func (v Service) CreateCall(ctx context.Context, o owner.Owner, in CallInput) (Call, error) {
	if v.Settings.Trunk == "" {
		return Call{}, apierror.Errorf(decision.NotImplemented, "Calls out need a trunk: set SLUICE_SIP_TRUNK.")
	}
	l, remote, err := v.check(ctx, o, in)
	if err != nil {
		return Call{}, err
	}
	if err := v.Streams.Vacant(ctx, l.StreamID); err != nil {
		return Call{}, conflict(err)
	}
	c := v.new(l, Outbound, Queued, remote)
	return c, conflict(postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if err := v.withinDay(ctx, tx, o); err != nil {
			return err
		}
		return insertCall(ctx, tx, c)
	}))
}

// withinDay fails with BILLING_002 when the plan of o allows no further call out today. A
// lock keeps two at once from passing the bound.
func (v Service) withinDay(ctx context.Context, tx pgx.Tx, o owner.Owner) error {
	most := v.Plans.Of(o.Plan).CallsPerDay
	if most == 0 {
		return nil
	}
	day := v.now().Truncate(24 * time.Hour)
	n, err := countOutbound(ctx, tx, o.ID, day)
	if err == nil && n >= most {
		err = apierror.Errorf(decision.QuotaUsed, "The plan's %d calls out a day are used up: the next day begins at %s.", max(most, 0), day.Add(24*time.Hour).Format(time.RFC3339))
	}
	return err
}

// conflict says of a stream that has a source already that it has.
func conflict(err error) error {
	if IsBusy(err) {
		return apierror.Errorf(decision.Conflict, "The stream has a source already. Stop it, or end its call, first.")
	}
	return err
}

// HangUp asks for a call to end. One that has ended stays as it is.
func (v Service) HangUp(ctx context.Context, o owner.Owner, id string) (c Call, err error) {
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if c, err = callOf(ctx, tx, o.ID, id, "FOR UPDATE"); err != nil || c.EndedAt != nil {
			return err
		}
		c.Hangup = true
		if _, err := tx.Exec(ctx, `UPDATE phone_calls SET hangup = true WHERE id = $1`, id); err != nil {
			return fmt.Errorf("hang up: %w", err)
		}
		return nil
	})
	return c, err
}
