// Package tui is the terminal dashboard and the live table: `rnix dashboard` and `rnix top`. It owns what is drawn and what
// keys do; it is a client of the wire and knows nothing behind that. Update is a function of the state and a message, and
// all that asks somebody is a command over Source, which a client of the socket is.
//
// The state is Model, which belongs to the goroutine of the program. rows folds the frames of watch_procs, list puts them
// in order and knows which one is chosen, by UUID. The screen is drawn anew only after something has changed, at most thirty
// times a second; only what is in sight is rendered.
//
// Text of agents is hostile: it passes through Theme.clean or Theme.line, and only then through anything else of this package.
//
// # Keys
//
// There is one table of keys (bindings, in the files that end in keys or are about what they do): keys, place, words, what is
// done. The help, the hints of the status line and the help of the commands derive from it, and TestEachKeyDoesWhatItSays
// presses every one.
//
// # Adding a pane
//
// A pane is what the right side shows of the process that is chosen. Look at detail.go, which is the model:
//
//   - a file of its own with a type that has the methods of pane (pane.go says what each promises), and of scroller if its
//     content is a long text: then scrolling, the wheel and search work;
//   - questions to the daemon are commands: ask(env, ipc.SomeMethod, request, func(answer, err) tea.Msg). The answer is a type
//     of its own that names the process, since answers come to every pane, and late ones too;
//     fetch (fetch.go) does that with all that belongs to it: never twice at once, not too often, what was known stays;
//   - the event log is read by a listener (listen.go), as log.go does; it ends in hide;
//   - a list of which one is chosen is a chooser (chooser.go): keys, mouse and search come with it;
//   - keys of its own are bindings with place inPane. They go before all others while the pane has the focus;
//   - a line in newPanes. Its number is its place there;
//   - a line in paneKeys of panes_test.go for each key, and what it shows in the tests there, with hostile text and no answers.
package tui
