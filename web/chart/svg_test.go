package chart_test

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// hostile is a text that must not leave its place in markup.
const hostile = `"><script>alert(1)</script>&'`

// wellFormed reads a drawing as XML and hands every element to look.
func wellFormed(t *testing.T, drawing template.HTML, look func(xml.StartElement)) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(string(drawing)))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%.400s", err, drawing)
		}
		if e, ok := token.(xml.StartElement); ok {
			look(e)
		}
	}
}

func TestDrawings(t *testing.T) {
	t.Parallel()
	nasty := small()
	for _, one := range nasty.Trials {
		one.Config = sglang.Merge(one.Config, sglang.Config{"env." + hostile: hostile})
	}
	nasty.Record.Name, nasty.Record.Objective = hostile, hostile
	nasty.Events = append(nasty.Events, tuner.Event{At: nasty.Trials[1].StartedAt, Kind: hostile, Text: hostile})
	for name, night := range map[string]webbed.Night{"hostile": nasty, "30": webbed.Make("n", 30, 7), "1000": webbed.Make("n", 1000, 7)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := 0
			for _, f := range collect(t, night).Figures(nil) {
				if f.Name != "night" && f.Name != "best" && f.Name != "area" {
					if f.Drawing != "" {
						t.Errorf("%s has a drawing", f.Name)
					}
					continue
				}
				total += len(f.Drawing)
				if strings.Contains(string(f.Drawing), ">−0<") {
					t.Errorf("%s has a tick at −0", f.Name)
				}
				elements := 0
				wellFormed(t, f.Drawing, func(e xml.StartElement) {
					elements++
					if strings.EqualFold(e.Name.Local, "script") {
						t.Errorf("%s: a script got in", f.Name)
					}
					for _, a := range e.Attr {
						if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
							t.Errorf("%s: attribute %s would break the policy", f.Name, a.Name.Local)
						}
					}
				})
				if elements < 8 || elements > 260 {
					t.Errorf("%s has %d elements", f.Name, elements)
				}
			}
			if total == 0 || total > 30_000 {
				t.Errorf("%d bytes of drawings; the page has room for 30,000", total)
			}
		})
	}
}

// TestFailuresAreNeverZero looks where the failed trial of the small night is drawn: below the plot.
func TestFailuresAreNeverZero(t *testing.T) {
	t.Parallel()
	d := collect(t, small())
	drawing := string(figure(t, d, "best").Drawing)
	at := strings.LastIndex(drawing, `class="glyph c-gpu" text-anchor="middle"`)
	if at < 0 || !strings.Contains(drawing[at:], "▲") {
		t.Fatalf("the failure is not drawn:\n%s", drawing)
	}
	if y := drawing[at:][strings.Index(drawing[at:], ` y="`)+4:]; !strings.HasPrefix(y, "242") {
		t.Errorf("the failure is at %.4s, want in the strip below the plot, at 242", y)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	night := small()
	night.Trials[1].Config["env.X"] = "=cmd|' /C calc'!A0"
	night.Trials[3].Config["env.X"] = "a,\"b\"\nc"
	d := collect(t, night)
	var b strings.Builder
	if err := figure(t, d, "best").Table.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := "Trial,Outcome,output tok/s,Best so far,Low,High\n" +
		"0,ok,1842,1842,1822,1862\n1,ok,1800,1842,1780,1820\n2,GPU memory,,1842,,\n" +
		"3,ok,2104,2104,2084,2124\n4,\"ok, void\",9000,2104,8980,9020\n5,ok,2200,2104,2180,2220\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := figure(t, d, "knobs").Table.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "\n=") || strings.Contains(text, ",=") {
		t.Errorf("a formula got out:\n%s", text)
	}
}

func TestVoidIsNotRanked(t *testing.T) {
	t.Parallel()
	d := collect(t, small())
	f := figure(t, d, "tradeoff")
	for _, row := range f.Table.Rows {
		if row[0].Trial == 4 {
			t.Error("the void trial is among those compared")
		}
	}
	for _, one := range small().Trials {
		if one.State == trial.Failed && f.Table.Total != 4 {
			t.Errorf("%d rows, want the 4 with a value that counts", f.Table.Total)
		}
	}
}
