//! `fluffy kernel serve`: the kernel's process. Clients submit work, watch it and answer for a person.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use fluffy_kernel::{ListenError, Server, ServerOptions, listen};
use fluffy_sandbox::l1::close_inherited;

use crate::args::ServeArgs;
use crate::driver;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::forge::person;
use crate::interrupt::Stop;
use crate::place::Place;
use crate::service::{Counter, Desk};
use crate::walls::{self, Walls};
use crate::wire::Surroundings;

/// How long a client may stand still: a person may have stopped it, and comes back to it.
const UNREAD: Duration = Duration::from_secs(24 * 3600);
/// Exit code: another process works for this project already. The bootstrap knows it.
const RUNNING: u8 = 75;

/// Works until it is not needed any more. What goes wrong is written as the bootstrap reads it.
pub(crate) fn run(
    place: Place,
    environment: &Environment,
    args: &ServeArgs,
) -> Result<u8, CliError> {
    begin(place, environment, args).or_else(|error| told(&error))
}

fn told(error: &CliError) -> Result<u8, CliError> {
    let explained = error.explained();
    let line = serde_json::to_string(&explained).map_err(std::io::Error::from)?;
    writeln!(std::io::stderr(), "{line}")?;
    Ok(explained.code)
}

fn begin(place: Place, environment: &Environment, args: &ServeArgs) -> Result<u8, CliError> {
    // Nothing that whoever started it has open is a way around the walls.
    close_inherited(&[])?;
    if args.inside.is_none() && driver::wants_container(environment)? {
        return walls::contain_kernel(&place, environment, args);
    }
    let (walls, surroundings) = Walls::find(&place, environment, args)?;
    let served = serve(place, environment, args, (&walls, surroundings));
    let code = served.or_else(|error| told(&error))?;
    walls.ends(code);
    Ok(code)
}

fn serve(
    place: Place,
    environment: &Environment,
    args: &ServeArgs,
    (walls, surroundings): (&Walls, Surroundings),
) -> Result<u8, CliError> {
    let client = rustix::process::geteuid().as_raw();
    // Found out before the walls close, behind which root is somebody else.
    let known = &Environment { user: Some(person()), ..environment.parts() };
    let (place, gate) = walls.close(place, environment, args)?;
    let listener = match listen(&args.socket) {
        Err(ListenError::AlreadyRunning(_)) => return Ok(RUNNING),
        listening => listening?,
    };
    let stop = Stop::listen()?;
    let desk = Arc::new(Desk::new(place, known.parts(), surroundings));
    let stopped = Arc::clone(&desk);
    stop.calls(move |_| stopped.stop());
    let service = Arc::new(Counter(Arc::clone(&desk)));
    let server = Server::start(
        listener,
        service,
        ServerOptions { also: Some(client), unread: UNREAD, ..ServerOptions::default() },
    )?;
    let ready = Arc::clone(&desk);
    // Whoever had this process started will want it, and is still on the way.
    std::thread::Builder::new().name("sandboxes".to_owned()).spawn(move || ready.make_ready())?;
    walls.watch(gate, &desk)?;
    desk.wait_for_idleness(Duration::from_secs(args.idle));
    desk.wait_for_work();
    server.stop();
    desk.write_down()?;
    Ok(DONE)
}
