package main

import (
	"errors"
	"net"
	"time"
)

var sseHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n")

var errCut = errors.New("cut")

// generate answers one request, whose body was read at t0.
func generate(c net.Conn, kind byte, body []byte, t0 time.Time) error {
	n := asked(body)
	seq := arrive(t0)
	defer leave(t0)
	if *failEach > 0 && seq%int64(*failEach) == 0 {
		st.errs.Add(1)
		return plain(c, 500, "application/json", []byte(`{"error":{"message":"injected","type":"server_error","code":500}}`))
	}
	s := get(kind, n)
	if !isStream(body) {
		time.Sleep(time.Until(t0.Add(*ttft + time.Duration(n-1)**itl)))
		if err := plain(c, 200, "application/json", s.full); err != nil {
			return err
		}
		st.done.Add(1)
		st.toks.Add(int64(n))
		return nil
	}
	if _, err := c.Write(sseHead); err != nil {
		return err
	}
	cut := -1
	if *cutEach > 0 && seq%int64(*cutEach) == 0 {
		cut = len(s.chunks) / 2
		st.errs.Add(1)
	}
	send := paced
	if *itl == 0 {
		send = atOnce
	}
	sent, err := send(c, s, t0, cut)
	if err != nil {
		return err
	}
	tail := s.tail
	if s.usage != nil && wantsUsage(body) {
		tail = append(append([]byte(nil), s.usage...), s.tail...)
	}
	if _, err := c.Write(tail); err != nil {
		return err
	}
	st.bytes.Add(sent + int64(len(tail)))
	st.toks.Add(int64(n))
	st.done.Add(1)
	return nil
}

// atOnce sends a stream as fast as the client takes it, -flush events a write. cut is the event before which it ends
// early, -1 for none.
func atOnce(c net.Conn, s *script, t0 time.Time, cut int) (sent int64, err error) {
	if *ttft > 0 {
		time.Sleep(time.Until(t0.Add(*ttft)))
	}
	var buf []byte
	for i := 0; i < len(s.chunks); i++ {
		if i == cut {
			return sent, errCut
		}
		if i == 0 {
			hTTFT.add(time.Since(t0))
		}
		if *flushN <= 1 || i == 0 {
			if _, err := c.Write(s.chunks[i]); err != nil {
				return sent, err
			}
			sent += int64(len(s.chunks[i]))
			continue
		}
		buf = append(buf, s.chunks[i]...)
		if i%*flushN == 0 || i == len(s.chunks)-1 {
			if _, err := c.Write(buf); err != nil {
				return sent, err
			}
			sent += int64(len(buf))
			buf = buf[:0]
		}
	}
	return sent, nil
}

// paced sends a stream's events at their times.
func paced(c net.Conn, s *script, t0 time.Time, cut int) (sent int64, err error) {
	var prev time.Time
	due := t0.Add(*ttft)
	if *step { // first token falls on the next global step
		due = time.Unix(0, (due.UnixNano()/int64(*itl)+1)*int64(*itl))
	}
	for i, ch := range s.chunks {
		if i == cut {
			return sent, errCut
		}
		if d := time.Until(due); d > 0 {
			time.Sleep(d)
		}
		if *stall > 0 {
			b := time.Unix(0, st.firstNS.Load()).Add(*stallAt)
			if now := time.Now(); now.After(b) && now.Before(b.Add(*stall)) {
				time.Sleep(b.Add(*stall).Sub(now))
			}
		}
		now := time.Now()
		hLate.add(now.Sub(due))
		if i == 0 {
			hTTFT.add(now.Sub(t0))
		} else {
			hITL.add(now.Sub(prev))
		}
		prev = now
		if _, err := c.Write(ch); err != nil {
			return sent, err
		}
		sent += int64(len(ch))
		due = due.Add(*itl * time.Duration(s.ntok[i]))
	}
	return sent, nil
}
