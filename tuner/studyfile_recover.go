package tuner

// readRecover reads recover.
func (d *decoder) readRecover(f field) {
	if w, ok := d.choice(f, "recover", RecoverReclaim, RecoverAdopt); ok {
		d.study.Recover, d.recoverAt = w, f
	}
}

// recoverText says what the next tune does with a server that a crash of sgtune leaves.
func (s *Study) recoverText() string {
	if s.Recover == RecoverAdopt {
		return "goes on with a server that was past its start and is proven to be its own, else as with recover: reclaim"
	}
	return "reclaims the host and launches the running trial again (recover: reclaim)"
}

// settleRecover refuses an adoption where it cannot be: on another machine the heartbeat of the server's guard and the load
// generator belong to the lease of the sgtune that died.
func (d *decoder) settleRecover() {
	s := d.study
	if s.Recover != RecoverAdopt || d.foreign {
		return
	}
	where := s.Host.Kind
	switch {
	case s.Server.Container != nil:
		where = "a server in a container"
	case s.Host.Kind == HostLocal || s.Host.Kind == HostSimulated:
		return
	}
	d.wrong(d.recoverAt.value, "`recover` adopt is for local and simulated hosts, not for %s; write recover: reclaim, or remove it", where)
}
