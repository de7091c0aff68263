"""Reading and writing what other tools make: images, fields, transforms, landmarks; and their geometry."""
