// begin: this part stands in docs/book/interfaces.md
#[interface]
pub trait Picture {
    /// Copies pixels from a place on; gives how many.
    fn show(&self, at: u64, #[window] into: &mut [u8]) -> Result<usize, PictureError>;
    /// Takes pixels for a place; gives how many.
    fn draw(&self, at: u64, #[window] pixels: &[u8]) -> Result<usize, PictureError>;
}

impl PictureServer for Screen {
    fn show(&self, _badge: u64, at: u64, mut into: Output<'_>) -> Result<usize, PictureError> {
        let pixels = self.from(at)?;
        let count = into.len().min(pixels.len());
        into.copy_from(0, &pixels[..count]);
        Ok(count)
    }

    fn draw(&self, _badge: u64, at: u64, pixels: Input<'_>) -> Result<usize, PictureError> {
        let mut place = self.from(at)?;
        let count = pixels.len().min(place.len());
        // The content of a window may change at any time: it is copied first, and checked then.
        pixels.copy_to(0, &mut place[..count]);
        Ok(count)
    }
}

/// As much as there is, by as many calls as it takes.
pub fn show_all<T: Transport>(screen: &PictureClient<T>, into: &mut [u8]) -> Result<usize, Failure<PictureError>> {
    let mut done = 0;
    while done < into.len() {
        match screen.show(done as u64, &mut into[done..])? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}
// end
use std::cell::{RefCell, RefMut};

use idl::{Failure, Input, Output, Transport, codes, interface};

codes! {
    /// Why not.
    pub enum PictureError {
        1 Outside "there are no pixels"
    }
}

/// Pixels.
pub struct Screen(pub RefCell<Vec<u8>>);

impl Screen {
    fn from(&self, at: u64) -> Result<RefMut<'_, [u8]>, PictureError> {
        let pixels = self.0.borrow_mut();
        if at as usize > pixels.len() {
            return Err(PictureError::Outside);
        }
        Ok(RefMut::map(pixels, |pixels| &mut pixels[at as usize..]))
    }
}
