//! `fluffy kernel serve`: the kernel's process. Clients submit work, watch it and answer for a person.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use fluffy_kernel::{ListenError, Server, ServerOptions, listen};
use fluffy_sandbox::l1::{close_inherited, enter};

use crate::args::ServeArgs;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::forge::person;
use crate::gate::{self, Standing};
use crate::interrupt::Stop;
use crate::place::Place;
use crate::service::{Counter, Desk};
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
    serve(place, environment, args).or_else(|error| {
        let explained = error.explained();
        let line = serde_json::to_string(&explained).map_err(std::io::Error::from)?;
        writeln!(std::io::stderr(), "{line}")?;
        Ok(explained.code)
    })
}

fn serve(place: Place, environment: &Environment, args: &ServeArgs) -> Result<u8, CliError> {
    // Nothing that whoever started it has open is a way around the walls.
    close_inherited(&[])?;
    let client = rustix::process::geteuid().as_raw();
    let surroundings = Surroundings::of(environment);
    let walls = place.confinement(environment, &args.socket)?;
    let gate = gate::start(&place, &args.socket)?;
    // Found out before the walls close, behind which root is somebody else.
    let environment = &Environment { user: Some(person()), ..environment.parts() };
    let _confined = enter(&walls)?;
    gate.as_ref().map_or(Ok(()), Standing::is_the_only_way)?;
    let place = place.through(gate::door(&args.socket, std::process::id()));
    let listener = match listen(&args.socket) {
        Err(ListenError::AlreadyRunning(_)) => return Ok(RUNNING),
        listening => listening?,
    };
    let stop = Stop::listen()?;
    let desk = Arc::new(Desk::new(place, environment.parts(), surroundings));
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
    if let Some(mut gate) = gate {
        let cut_off = Arc::clone(&desk);
        std::thread::Builder::new().name("gate".to_owned()).spawn(move || {
            // Whoever comes next gets a kernel with a gate.
            let _ended = gate.process.wait();
            cut_off.hurry();
        })?;
    }
    let orphaned = Arc::clone(&desk);
    std::thread::Builder::new().name("bootstrap".to_owned()).spawn(move || {
        // Nothing is said there: its end is the end of the bootstrap.
        let _ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        orphaned.hurry();
    })?;
    desk.wait_for_idleness(Duration::from_secs(args.idle));
    desk.wait_for_work();
    server.stop();
    Ok(DONE)
}
